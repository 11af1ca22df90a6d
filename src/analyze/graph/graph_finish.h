// What is laid over a dependency graph once its nodes and edges stand: the cost of recording, and the window that is
// judged. Private to analyze/graph/graph.cc.
#pragma once

#include <cstddef>
#include <vector>

#include "analyze/graph/graph.h"

namespace firelane::analyze {

struct RecordingPrices {
  const SliceCosts& costs;
  const StepList& steps;
  const std::vector<double>& pace;  // both as build_graph has them
  const RecorderCharges& charges;
};

// Puts the estimated cost of recording each slice on the host edge in which the slice starts. `last_work_of`: by host
// slice, the device work it launched that ends last; kNoRow: none.
void charge_recording(const Model& model, const HostTime& host, const RecordingPrices& prices,
                      const std::vector<Row>& last_work_of, Graph& graph);

// Boundaries of the steps, the work that ends the window, and the work that kept the device busy as it began.
void find_window(const Model& model, const StepList& steps, Graph& graph);

}  // namespace firelane::analyze
