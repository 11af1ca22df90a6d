// What is asked of several traces together: /api/compare, /api/compare/flame and /api/runs. The numbers are those of
// `firelane compare --json`: the same reports, described.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "compare/statistics/judge.h"
#include "report/comparison.h"
#include "serve/answer.h"
#include "serve/request.h"
#include "traces/trace_set.h"

namespace firelane::serve {

// Which traces of a set are compared, unless a request names others, and whether the page starts with that.
struct Comparison {
  std::vector<size_t> before;  // both empty: the first trace and the second
  std::vector<size_t> after;
  compare::JudgeOptions judge;
  std::optional<report::RunsBy> by;  // the table of all runs comes first
  double price_per_hour = -1;
  bool is_first = false;
};

// The sides filled in. A set of one trace has none.
Comparison completed(Comparison comparison, size_t traces);

// before=A,B&after=C&threshold=&alpha=&rows=
Answer compared(const TraceSet& traces, const Comparison& usual, const Request& request);
// before=&after=&by=device|stack|op&bins=
Answer compared_flame(const TraceSet& traces, const Comparison& usual, const Request& request);
// by=file|model|batch&price_per_hour=&rows=
Answer compared_runs(const TraceSet& traces, const Comparison& usual, const Request& request);

}  // namespace firelane::serve
