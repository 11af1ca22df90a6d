// How well each rule has done on programs whose true gain is known: the basis of its ranges and its confidence.
#pragma once

#include <string_view>

#include "advise/finding.h"

namespace firelane::advise {

struct Proof {
  std::string_view rule;
  int programs = 0;  // with the fault planted, whose steps were timed with the fault and with the fix
  int right = 0;     // of them: the fault was named, and the fix gained at least half of what was predicted
  // Errors as shares of the predicted gain: in 97% of the programs the true gain is not further below, or above.
  double below = 0;
  double above = 0;
};

// nullptr: never tried on a program whose gain is known.
const Proof* proof_of(std::string_view rule);

struct Errors {
  double below = 0;
  double above = 0;
};
// The errors to expect of a rule: a mix of its own and those of all rules, weighted towards its own the more programs
// it was tried on.
Errors errors_of(std::string_view rule);

// How far measured gains exceed the replay's, as a share, where the replayed part is a small part of a step: side
// effects of a change, such as allocations and cache misses, have no events.
inline constexpr double kTakenAlong = 0.12;

// The most that a finding of the rule may say about itself: "high" needs kLeastPrograms, nine of ten of them right.
inline constexpr int kLeastPrograms = 4;
Confidence most_sure(std::string_view rule);

}  // namespace firelane::advise
