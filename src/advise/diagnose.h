// From a trace to a verdict: what limits the program, what is worth changing, and how much that gains. The numbers
// behind it are those of analyze::study.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "advise/finding.h"
#include "advise/places.h"
#include "advise/verdict.h"
#include "traces/studied_trace.h"

namespace firelane::advise {

struct Diagnosis {
  Verdict verdict;                // what limits the program
  std::vector<Finding> findings;  // most gain first; then those that are not about time
  bool empty = false;             // nothing to analyze; the notes say what to record
  bool judges_time = true;        // false: a dump, which has no steps, operators or kernels
  bool healthy = false;           // the limit is known, no finding saves time, and the device does not idle
  std::string why;                // healthy: why nothing is worth fixing; no finding: what is left unexplained; else ""
  LargestLines lines;             // where in the program the time goes
  std::vector<std::string> notes;  // what to know about the numbers
};

// The study of a trace, and beside it, where a trace is large, what rules will ask for and the study does not need.
void study_ahead(const StudiedTrace& trace);

Diagnosis diagnose(const StudiedTrace& trace);

}  // namespace firelane::advise
