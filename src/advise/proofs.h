// How well each rule has done on programs whose true gain is known: what its ranges and its confidence rest on.
#pragma once

#include <string_view>

#include "advise/finding.h"

namespace firelane::advise {

struct Proof {
  std::string_view rule;
  int programs = 0;  // with the fault planted, whose steps were timed with it and mended
  int right = 0;     // of them: named, and the mended program was faster by at least half of what was said
  double error = 0;  // of the middle, as a part of it: 90% of the programs are nearer to the truth
};

// nullptr: never tried on a program whose gain is known.
const Proof* proof_of(std::string_view rule);

// The error to expect of a rule: its own and that of all rules together, the more its own the more programs it was
// tried on.
double error_of(std::string_view rule);

// The most that a finding of the rule may say about itself: "high" needs kLeastPrograms, nine of ten of them right.
inline constexpr int kLeastPrograms = 4;
Confidence most_sure(std::string_view rule);

}  // namespace firelane::advise
