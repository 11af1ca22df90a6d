// Which difference of clocks puts the collectives of one island onto those of another. Private to ranks/reduce.
//
// Rows are missing and windows are cut, so that how many rows find a partner proves little, and a step looks like the
// next one. What does prove something is how far the ends of partners scatter. Under the true shift that is noise
// alone; under a wrong one it is the same noise, and on top of it how much the time from one collective to the next
// differs. So whichever shift is the true one, no other scatters less, but by chance. From that follows what has to be
// shown of the shift that scatters the least before it is taken:
//
//   each other one scatters so much more that, were it the true one, estimates of the same noise would be as different
//   with a probability of 1e-8 (the tail of the F distribution: how many collectives there are counts, and nothing is
//   assumed about the noise but that it is independent for each collective; where it does not, they count as fewer), or
//   lacks partners that it should have had, or is one that no clock can have;
//
//   and the true one is among them: a clock that is off by at most 50 ms puts the rows onto something that was
//   recorded. Where it may not, the best one must be too even for a wrong one: the steps from burst to burst scatter
//   less than under any shift that is known to be wrong, again up to a probability of 1e-8.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ranks/reduce/islands.h"

namespace firelane::ranks {

inline constexpr double kLogUnlikely = -18.42;  // 1e-8

enum class ShiftFound : uint8_t { kNone, kSeveral, kOne };

struct FoundShift {
  ShiftFound found = ShiftFound::kNone;
  ClockLine line;         // of the other island: the best one, also where it is not certain
  double log_chance = 0;  // that another one is right
  EndNoise noise;
  size_t judged = 0;  // rows that were looked at
};

FoundShift find_shift(const Intake& intake, const Island& island, const Island& other);

// What the collectives of two islands say about whether they have the same clock.
struct SameClock {
  bool is_seen = false;   // enough collectives of both
  bool may_be = false;    // no other shift fits better
  double log_chance = 0;  // that it fits although it is not so
  EndNoise noise;
  size_t judged = 0;
};
// `usual_ns`: noise of others in this job, where few collectives say how large it is.
SameClock try_same_clock(const Intake& intake, const Island& island, const Island& other, double usual_ns = 0);

}  // namespace firelane::ranks
