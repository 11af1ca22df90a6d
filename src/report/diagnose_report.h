// The verdict and its findings: for people with bars, for programs as one JSON object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "advise/finding.h"
#include "analyze/verdict/study.h"
#include "report/table.h"
#include "traces/studied_trace.h"

namespace firelane::report {

// Ends with a line break, in every form. JSON: the object that docs/analyses.md describes under "diagnose".
std::string diagnosis(const StudiedTrace& trace, Form form, const TextStyle& style = {});

// The verdict and the findings with the most gain, two lines each: for the end of a recording.
struct ShortOptions {
  size_t max_findings = 3;
  TextStyle style;
};
std::string short_diagnosis(const StudiedTrace& trace, const ShortOptions& options = {});

// One row per finding, without evidence: for Markdown, CSV and Python.
Report findings_report(const StudiedTrace& trace);

// Where a step goes, a line with a bar for each part.
std::string step_bars(const analyze::Study& study, const TextStyle& style = {});
// "saves 2.0 ms to 4.0 ms of a step: 1.05x to 1.11x as fast"; "" for findings that save no time by themselves.
std::string gain_text(const advise::Finding& finding, const analyze::Study& study);

// Where to look in the timeline: "3.8 ms at 44.812 ms".
std::string place_text(int64_t start_ns, int64_t duration_ns);

// A bar of `width` places for a share of 0..1.
std::string bar(double share, size_t width, const TextStyle& style);

}  // namespace firelane::report
