// How full a kernel can make the multiprocessors, and what keeps it from filling them: CUDA's occupancy calculation,
// from the launch and the device's limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/model.h"

namespace firelane {

struct LaunchShape {
  double blocks = 0;                 // of the grid
  int64_t threads = 0;               // of a block
  int64_t registers = 0;             // per thread; <= 0: unknown
  int64_t shared_memory_bytes = -1;  // per block, static and dynamic; < 0: unknown
};

struct Occupancy {
  double blocks_per_sm = 0;  // grid size / multiprocessors
  double warps_per_sm = 0;
  double percent = 0;       // estimated, achieved: of the threads that a multiprocessor can hold
  int64_t most_blocks = 0;  // that fit on a multiprocessor at once
  OccupancyLimit limit = OccupancyLimit::kUnknown;
};

// Nothing when the device's limits or the launch are not known, or contradict each other.
std::optional<Occupancy> estimate_occupancy(const DeviceProperties& device, const LaunchShape& launch);
// Grid and block by their three sides; a side below 1 is unknown.
LaunchShape launch_shape(const KernelDetails& kernels, Row row);
// The properties of a device of the trace; null when it does not tell them.
const DeviceProperties* find_device(const TraceInfo& info, int32_t device);

// The one place that decides what the occupancy of a kernel is: as the trace gives it where that can be, else as
// estimated, else unknown (-1); and what limits it. Part of assemble().
void fill_occupancy(Model& model);

}  // namespace firelane
