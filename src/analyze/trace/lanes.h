// What happened on each lane: threads, streams, async tracks.
//
// busy_ns is the union of the lane's slices: for a thread every slice but profiler spans,
// for a stream the device work. depth is how deep host slices nest, and on a stream how many
// pieces of work ran at the same time (1 unless they overlap).
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct LaneRow {
  LaneId lane{};
  int64_t slices = 0;  // host and device
  int64_t first_ns = kNoNumber;
  int64_t last_ns = kNoNumber;
  int64_t busy_ns = 0;
  int64_t depth = 0;
};

// One row per lane, in the model's order; lanes without a slice included.
std::vector<LaneRow> lane_table(const Model& model);

}  // namespace firelane::analyze
