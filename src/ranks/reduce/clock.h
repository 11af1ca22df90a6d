// One time axis for all ranks: an offset and a drift for each clock, with a bound on the error that holds.
//
// In a collective that synchronizes, no rank ends before the last one has begun. With s and e for start and end by the
// own clock, and D for how far clock B is ahead of clock A, every such collective says
//     max(s of B) - min(e of A)  <=  D  <=  min(e of B) - max(s of A)
// D is a line, offset + drift x time; the lines that satisfy all of this are a polygon, and the largest distance from
// the estimate to any of them is the bound. The estimate itself comes from the ends, which lie together, those of short
// collectives most. An empty polygon is a wrong match, or a clock that jumped.
#pragma once

#include <cstdint>
#include <vector>

#include "ranks/reduce/match.h"

namespace firelane::ranks {

struct DomainClock {
  bool known = false;       // connected with the reference by collectives
  bool consistent = true;   // some line satisfies every collective
  double offset_ns = 0;     // ahead of the reference, at `at_ns`
  double drift = 0;         // ns per ns
  double bound_ns = 0;      // the error is at most this, from its first collective to its last
  double spread_ns = 0;     // of ends around the line: median distance
  int64_t collectives = 0;  // that were looked at
  int64_t at_ns = 0;
  double ahead_ns(int64_t time_ns) const { return offset_ns + drift * static_cast<double>(time_ns - at_ns); }
};

struct Clocks {
  uint32_t reference = 0;            // domain
  std::vector<DomainClock> domains;  // as in Intake::domains
  // A time of this domain's clock on that of the reference.
  int64_t aligned(uint32_t domain, int64_t time_ns) const {
    return time_ns - static_cast<int64_t>(domains[domain].ahead_ns(time_ns));
  }
};

Clocks fit_clocks(const Intake& intake, const Matches& matches);

// Lines a + b x that lie above all low points and below all high ones, |b| bounded: for tests.
struct LinePoint {
  double x = 0;
  double low = 0;
  double high = 0;
};
struct LineBound {
  bool feasible = false;
  double a = 0;  // the estimate, moved inside when it was not
  double b = 0;
  double bound = 0;  // largest distance to any feasible line in [x0, x1]
};
LineBound bound_line(const std::vector<LinePoint>& points, double a, double b, double most_b, double x0, double x1);

}  // namespace firelane::ranks
