// Ranks that stand out, and why. Private to ranks/reduce.
#pragma once

#include "ranks/reduce/reduce.h"
#include "ranks/reduce/waits.h"

namespace firelane::ranks {

// Most gain first. Empty when lateness is spread as chance spreads it over equal ranks.
std::vector<Straggler> find_stragglers(const Intake& intake, const Waits& waits, const JobReplay& replay,
                                       const Scaling& scaling);

// Chance of at least `hits` of `tries` at `share` each.
double binomial_tail(int64_t hits, int64_t tries, double share);

// What the rank did otherwise than the median of the others, per step.
struct CauseFound {
  Cause cause = Cause::kUnknown;
  std::string why;
  std::string kernel;
};
CauseFound find_cause(const Intake& intake, uint32_t rank, const std::vector<uint32_t>& peers);

}  // namespace firelane::ranks
