// A whole trace in one document: the verdict, its findings, and the tables behind them.
//
//   const TraceReport report = trace_report(trace, "run.lane");
//   std::cout << markdown(trace, report);
//
// The tables are those of the verbs, with fewer columns and rows: enough to follow the verdict,
// and each says which verb has the rest.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/table.h"
#include "traces/studied_trace.h"

namespace firelane::report {

// Names longer than this lose their middle: a page is not wider.
inline constexpr size_t kPageWidth = 80;

struct TraceReport {
  std::string name;  // of the trace: a file's name
  // One per subject that this trace has something about, each with a title: how a step was spent, operators, kernels,
  // memory, ..., at last what the trace cannot answer.
  std::vector<Report> sections;
};

TraceReport trace_report(const StudiedTrace& trace, std::string name);

// GitHub-flavoured Markdown.
std::string markdown(const StudiedTrace& trace, const TraceReport& report);

}  // namespace firelane::report
