// From a trace to a verdict: what limits the program, what is worth changing, and how much that gains. The numbers
// behind it are those of analyze::study.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "advise/finding.h"
#include "advise/places.h"
#include "advise/verdict.h"
#include "traces/studied_trace.h"

namespace firelane::advise {

enum class State : uint8_t {
  kJudged,     // the verdict is about the steps of the program
  kNoVerdict,  // a dump, stacks or a device that nobody knows: what limits a step cannot be told from it
  kEmpty,      // neither operators nor device work; the notes say what to record
};
std::string_view name_of(State state);  // "judged", "no_verdict", "empty"

struct Diagnosis {
  Verdict verdict;                // what limits the program
  std::vector<Finding> findings;  // most gain first; then those that are not about time
  State state = State::kJudged;
  bool healthy = false;  // the limit is known, no finding saves time, and the device does not idle
  std::string why;       // healthy: why nothing is worth fixing; no finding: what is left unexplained; else ""
  LargestLines lines;    // where in the program the time goes
  std::vector<std::string> notes;  // what to know about the numbers

  bool is_judged() const { return state == State::kJudged; }
  bool nothing_to_say() const { return !is_judged() && findings.empty(); }  // the notes say what to record or to open
  // Stands before `why`, or above the findings: "Nothing worth fixing", "What to fix, largest first". "" where there is
  // no verdict and nothing to fix either.
  std::string headline() const;
};

// The study of a trace, and beside it, where a trace is large, what rules will ask for and the study does not need.
void study_ahead(const StudiedTrace& trace);

Diagnosis diagnose(const StudiedTrace& trace);

}  // namespace firelane::advise
