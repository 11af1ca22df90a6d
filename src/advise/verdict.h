// What limits the program, in parts: each front shows or omits them, and none parses the sentence again.
#pragma once

#include <string>

#include "analyze/verdict/study.h"

namespace firelane::advise {

struct Verdict {
  analyze::Bound bound;  // the limit, and the share of each side
  std::string label;  // "overhead-bound"; "overhead-bound or mixed" where recording slowed the program too much to tell
  std::string reason;   // "the host cannot feed the device fast enough"
  std::string step;     // "a step takes 37.4 ms (54.6 ms while recording), the device is busy 34% of it"; may be ""
  std::string meaning;  // the limit for someone who meets it for the first time: whole sentences; may be ""

  std::string headline() const { return label + ": " + reason; }
  std::string sentence() const;  // the headline and the step
};

Verdict verdict_of(const analyze::Study& study);

// Of a trace that does not show what limits a step.
Verdict no_verdict(std::string reason);

// Of the average step without recording, as in the verdict's sentence: 0..1; 0 without device work.
double device_busy_share(const analyze::Study& study);

}  // namespace firelane::advise
