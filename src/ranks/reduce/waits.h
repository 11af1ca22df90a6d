// Waiting separated from data transfer, and who made the others wait. Private to ranks/reduce.
//
// In each collective that synchronizes, the last arrival divides waiting from moving. How late the last one is,
// measured from the median arrival, is charged to it as far as its own work took longer than that of the others since
// the collective before; the rest it inherited, and is charged to whoever made it late there.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "ranks/reduce/replay.h"

namespace firelane::ranks {

// What one look at the members of a collective tells.
struct Meeting {
  int64_t last_arrival_ns = INT64_MIN;  // on the common axis
  int64_t lateness_ns = 0;              // of the last one, from the median arrival
  int64_t own_ns = 0;                   // of it, by its own work
  int64_t wait_sum_ns = 0;
  int64_t bytes = 0;
  int64_t most_bytes = 0;
  Member latest;
  bool contradicts = false;  // a rank ends before another begins
};

struct RankWaits {
  int64_t waited_ns = 0;
  int64_t late_ns = 0;
  int64_t passed_on_ns = 0;
  int64_t last_count = 0;
  int64_t collective_ns = 0;
  int64_t overlapped_ns = 0;
  std::vector<int64_t> late_by_step;  // own lateness; the last: outside of steps
  std::vector<int64_t> wait_by_step;  // for others, hidden or not; the last: outside of steps
  std::map<uint32_t, int64_t> late_by_group;
  int64_t latest_ns = 0;        // the largest own lateness
  int64_t latest_start_ns = 0;  // and its arrival, in the rank's own trace
  // Collectives in steps that are judged, not under computing.
  int64_t exposed_wait_ns = 0;
  int64_t exposed_transfer_ns = 0;
  int64_t exposed_unmatched_ns = 0;
  std::map<uint32_t, int64_t> exposed_by_group;  // all three
};

// Collectives of one operation, size and group size.
struct KindWaits {
  std::vector<int64_t> wait_ns;  // average of its ranks
  std::vector<int64_t> transfer_ns;
  double imbalance_sum = 0;
  int64_t imbalance_count = 0;
};

struct Waits {
  std::vector<RankWaits> ranks;
  std::vector<int64_t> group_wait_ns;  // by group, all ranks
  std::vector<int64_t> group_transfer_ns;
  std::vector<int64_t> group_exposed_ns;  // in steps that are judged, not under computing
  std::map<std::tuple<uint32_t, int64_t, int64_t, uint32_t>, KindWaits> kinds;  // signature, bytes, ranks, first group
  double recorded_ns = 0;         // first to last end of what synchronizes
  std::vector<Meeting> meetings;  // by instance
};

// Fills `replay`; takes what contradicts the clocks out of `matches`.
Waits find_waits(const Intake& intake, Matches& matches, const Clocks& clocks,
                 const std::vector<uint32_t>& kind_of_group, JobReplay& replay);

// Steps that count: all but warm-up, unless all are.
bool is_judged(const PartSteps& steps, size_t step);

}  // namespace firelane::ranks
