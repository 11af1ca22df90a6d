// What a rule may look at: the trace, the analyzed steps, and the graph to replay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "analyze/common/intervals.h"
#include "analyze/graph/whatif.h"
#include "analyze/verdict/study.h"
#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::advise {

struct Context {
  const StudiedTrace& trace;
  const Model& model = trace.model();
  analyze::Interval window;    // the steps that are judged, as recorded: warm-up is left out
  int64_t step_count = 1;      // in the window; 1 when the trace has no steps
  int64_t recorded_ns = 0;     // a step while recording
  int64_t step_ns = 0;         // a step without recording: what shares and gains are measured against
  int64_t device_busy_ns = 0;  // per step, some stream worked
  bool has_device_work = false;
  // Time per step that `change` would save, by replaying the graph with recording undone.
  std::function<int64_t(const analyze::WhatIf& change)> gain_ns;

  // All analyses; null only in tests of rules that do not look at them.
  const analyze::Study* study = nullptr;

  // How whoever recorded this asks for `option`: "--stacks", "stacks=True", "with_stack=True".
  std::string flag(RecordOption option) const { return std::string(model.info.environment.flag(option)); }
  bool in_window(int64_t time_ns) const { return time_ns >= window.start_ns && time_ns < window.end_ns; }
  // Device work belongs to the step that launched it: a device that lags behind still works when the host's window is
  // over.
  bool holds(Row work) const {
    const Row launch = model.device_slices.launch[work];
    // For work without a launch: what ran before the steps began on the device is older than they are.
    const bool is_older =
        launch == kNoRow && study != nullptr && model.device_slices.end_ns(work) <= study->recorded.start_ns;
    if (is_older) return false;
    return in_window(launch == kNoRow ? model.device_slices.start_ns[work] : model.host_slices.start_ns[launch]);
  }
  // What a host slice took, without waiting for a core.
  int64_t took_ns(Row slice) const {
    return took_ns(model.host_slices.start_ns[slice], model.host_slices.end_ns(slice));
  }
  int64_t took_ns(int64_t start_ns, int64_t end_ns) const;
  double share_of_step(int64_t ns_per_step) const {
    return step_ns <= 0 ? 0 : std::clamp(static_cast<double>(ns_per_step) / static_cast<double>(step_ns), 0.0, 1.0);
  }
};

}  // namespace firelane::advise
