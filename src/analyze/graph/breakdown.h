// How each step was spent, on the device and on the host; the parts add up to the step exactly.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analyze/graph/graph.h"
#include "analyze/graph/idle.h"
#include "analyze/host/host_time.h"
#include "model/model.h"

namespace firelane::analyze {

struct BreakdownRow {
  int64_t number = kNoNumber;  // of the step; kNoNumber for the sum
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  // Device. Each moment counts once, in this order: computing, communication, memcpys and memsets, idle.
  int64_t compute_ns = 0;
  int64_t communication_ns = 0;  // exposed: no kernel computed meanwhile
  int64_t copy_ns = 0;           // exposed: neither computing nor communication meanwhile
  IdleTimes idle{};
  // Host: the leading chain.
  ActivityTimes host{};

  int64_t busy_ns() const { return compute_ns + communication_ns + copy_ns; }
};

struct Breakdown {
  std::vector<BreakdownRow> steps;  // the judged steps; device-bound steps end when the device is done with them
  BreakdownRow total;               // over the window
  bool has_device_work = false;
};

Breakdown break_down(const Model& model, const HostTime& host, const Graph& graph, const Replay& recorded,
                     const StepList& steps, const IdleTable& idle);

}  // namespace firelane::analyze
