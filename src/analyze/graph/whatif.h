// A question to the dependency graph: "how long would it have taken if ...?"
//
//   WhatIf change;
//   change.host.push_back({.lane = lane, .start_ns = gc_start, .end_ns = gc_end});  // without this pause
//   change.device.push_back({.row = kernel, .keep = 0.5});                          // this kernel twice as fast
//   change.waits.push_back(call);                                                   // this call no longer waits
//
// analyze/graph/graph.h answers it by replaying the graph: everything that depended on the changed
// piece moves as far as its other dependencies let it, and no further.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

// A stretch of a thread's time that would take `keep` of what it took. Stretches of one thread may
// overlap: a moment is taken out once.
struct HostCut {
  LaneId lane{};
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  double keep = 0;
};

// A piece of device work (row of device_slices) that would take `keep` of what it took.
struct DeviceCut {
  Row row = kNoRow;
  double keep = 0;
};

struct WhatIf {
  std::vector<HostCut> host;
  std::vector<DeviceCut> device;
  std::vector<Row> waits;  // blocking calls (rows of host_slices) that would return without waiting for the device

  // Work waits for its launch and its data, not for what only stands before it on its stream. Changes nothing without
  // an execution trace.
  bool data_order_only = false;

  // Whole classes of cost, 1 = as recorded, 0 = free.
  double keep_host = 1;           // everything that threads do themselves; waiting for the device is not that
  double keep_kernels = 1;        // computing kernels
  double keep_communication = 1;  // collectives
  double keep_copies = 1;         // memcpys and memsets
  double keep_latency = 1;        // from a launch call to an idle device's start, and between queued kernels
};

}  // namespace firelane::analyze
