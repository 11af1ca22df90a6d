// How well each rule has done on programs whose true gain is known: what its ranges and its confidence rest on.
#pragma once

#include <string_view>

#include "advise/finding.h"

namespace firelane::advise {

struct Proof {
  std::string_view rule;
  int programs = 0;  // with the fault planted, whose steps were timed with it and mended
  int right = 0;     // of them: named, and the mended program was faster by at least half of what was said
  // Of what was said to be likely, as parts of it: in 97% of the programs the truth is not further below, or above.
  double below = 0;
  double above = 0;
};

// nullptr: never tried on a program whose gain is known.
const Proof* proof_of(std::string_view rule);

struct Errors {
  double below = 0;
  double above = 0;
};
// The errors to expect of a rule: its own and those of all rules together, the more its own the more programs it was
// tried on.
Errors errors_of(std::string_view rule);

// By so much of it measured gains exceed what a replay gives where that is a small part of a step: what the change
// takes along with it, such as allocations and misses in caches, no event says.
inline constexpr double kTakenAlong = 0.12;

// The most that a finding of the rule may say about itself: "high" needs kLeastPrograms, nine of ten of them right.
inline constexpr int kLeastPrograms = 4;
Confidence most_sure(std::string_view rule);

}  // namespace firelane::advise
