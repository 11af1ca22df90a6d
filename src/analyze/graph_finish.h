// What is laid over a dependency graph once its nodes and edges stand: the cost of recording, and the window that is
// judged. Private to analyze/graph.cc.
#pragma once

#include <cstddef>
#include <vector>

#include "analyze/graph.h"

namespace firelane {

// Puts the estimated cost of recording each slice on the host edge in which the slice starts. `last_work_of`: by host
// slice, the device work it launched that ends last; kNoRow: none.
void charge_recording(const Model& model, const HostTime& host, const SliceCosts& costs,
                      const std::vector<Row>& last_work_of, Graph& graph);

// Boundaries of the steps, the work that ends the window, and the work that kept the device busy as it began.
void find_window(const Model& model, const StepList& steps, Graph& graph);

// When the call that launched a piece of work began; kNoNumber when the trace does not say.
inline int64_t launch_start(const Model& model, Row device_row) {
  const Row launch = model.device_slices.launch[device_row];
  return launch == kNoRow ? kNoNumber : model.host_slices.start_ns[launch];
}

// Visits the device work of each stream in order: fn(row, row before or kNoRow).
template <typename Fn>
void each_in_stream(const Model& model, const Fn& fn) {
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    Row before = kNoRow;
    for (Row row = model.lanes.device_begin[lane]; row < model.lanes.device_end[lane]; ++row) {
      if (!is_device_work(model.device_slices.kind[row])) continue;
      fn(row, before);
      before = row;
    }
  }
}

}  // namespace firelane
