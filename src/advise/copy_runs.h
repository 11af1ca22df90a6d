// Runs of copies between host and device, with no other device work between them.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/common/intervals.h"
#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::advise {

struct DeviceCopyRun {
  CopyDirection direction = CopyDirection::kHtoD;
  LaneId lane{};
  std::vector<Row> copies;  // of device_slices, in the order in which they were launched
  std::vector<Row> ops;     // operators that no other one calls, each with at least one of them
  int64_t bytes = 0;
  int64_t start_ns = 0;  // of the first operator; views right before it belong to it
  int64_t end_ns = 0;    // of the last
  bool holds(int64_t time_ns) const { return time_ns >= start_ns && time_ns < end_ns; }
};

// For the analyzed steps, in order of time: runs of small copies to the device whose cost is their number, not their
// bytes.
std::vector<DeviceCopyRun> small_copy_runs(const StudiedTrace& trace);

// The same of runs that bring to the host what lives from step to step, or what an optimizer works on: parameters,
// gradients, state. In at least half of the steps, and where the recording follows tensors.
std::vector<DeviceCopyRun> weight_copy_runs(const StudiedTrace& trace);

// Whether one of them, in order of time, holds that moment of a lane.
bool is_in_run(const std::vector<DeviceCopyRun>& runs, LaneId lane, int64_t time_ns);

}  // namespace firelane::advise
