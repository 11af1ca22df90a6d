// Self time: the time of a slice in which none of the slices inside of it was open.
//
//   self[row] = duration[row] for every slice; then
//   sweep_lane(model, lane, range, pick, [&](const SweptSlice& slice) {
//     if (slice.around != kNoRow) self[slice.around] -= slice.covers_ns;
//   });
//
// Slices that `pick` does not want are looked through: what is inside of them belongs to the slice around them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analyze/common/intervals.h"
#include "model/model.h"

namespace firelane::analyze {

// How much of a slice the slices inside of it have covered, met in order of time.
struct CoveredTime {
  int64_t until_ns = INT64_MIN;
  // What [start, end) covers that nothing before it did.
  int64_t add(int64_t start_ns, int64_t end_ns) {
    const int64_t new_ns = std::max<int64_t>(0, end_ns - std::max(start_ns, until_ns));
    until_ns = std::max(until_ns, end_ns);
    return new_ns;
  }
};

inline constexpr Interval kAllTime{INT64_MIN, INT64_MAX};

struct SweptSlice {
  Row row = kNoRow;       // of host_slices
  Row around = kNoRow;    // the innermost wanted slice that it lies in
  Interval part;          // what of it lies in the range; empty for a slice without length
  int64_t covers_ns = 0;  // of the self time of `around`: slices before it may have covered a part already
};

// Calls visit(SweptSlice) for the host slices of a lane that touch `range` and that pick(row) wants, in order of time,
// outer ones first.
template <typename Pick, typename Visit>
void sweep_lane(const Model& model, LaneId lane, const Interval& range, const Pick& pick, const Visit& visit) {
  struct Open {
    Row row = kNoRow;
    size_t wanted = SIZE_MAX;  // place in `open` of the innermost wanted slice, itself included
    CoveredTime covered;
  };
  const HostSlices& host = model.host_slices;
  const Row end = model.lanes.host_end[static_cast<size_t>(lane)];
  std::vector<Open> open;
  for (Row row = model.lanes.host_begin[static_cast<size_t>(lane)]; row < end && host.start_ns[row] < range.end_ns;
       ++row) {
    const int64_t start_ns = host.start_ns[row];
    const Interval part{std::max(start_ns, range.start_ns), std::min(host.end_ns(row), range.end_ns)};
    const bool is_moment = host.duration_ns[row] == 0 && start_ns >= range.start_ns;
    if (part.start_ns >= part.end_ns && !is_moment) continue;
    // A parent stands before its children, and touches the range when they do.
    while (!open.empty() && open.back().row != host.parent[row]) open.pop_back();
    Open slice{.row = row, .wanted = open.empty() ? SIZE_MAX : open.back().wanted};
    if (pick(row)) {
      SweptSlice swept{.row = row, .part = part};
      if (slice.wanted != SIZE_MAX) {
        Open& around = open[slice.wanted];
        swept.around = around.row;
        swept.covers_ns = around.covered.add(part.start_ns, part.end_ns);
      }
      visit(swept);
      slice.wanted = open.size();
    }
    open.push_back(slice);
  }
}

}  // namespace firelane::analyze
