// Which part of a training step a slice belongs to: forward, backward, optimizer, data, transfer.
//
// A host slice takes the phase of the nearest slice around it, itself included, that says one:
//   data       enumerate(DataLoader)#...
//   optimizer  Optimizer.step#..., Optimizer.zero_grad#...
//   backward   autograd::engine::evaluate_function..., *Backward*, ops with a forward thread, an annotation or a Python
//              frame "backward"
//   transfer   aten::to, aten::copy_, ... around a copy between host and device, unless in data or optimizer
//   forward    an nn.Module, an annotation "forward"; ops that none of the above holds
// An optimizer that is given a closure (Lightning, LBFGS) runs forward and backward inside of its step: what an
// Optimizer.step holds up to the end of the last backward in it is no part of the update.
// Python, runtime calls and gaps that nothing holds have none. Device work has the phase of its op, else of its launch;
// copies between host and device are transfer.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

enum class Phase : uint8_t { kNone, kForward, kBackward, kOptimizer, kData, kTransfer };
inline constexpr size_t kPhaseCount = 6;
std::string_view name_of(Phase phase);  // "none", "forward", ...

struct Phases {
  std::vector<Phase> host;    // one per row of host_slices
  std::vector<Phase> device;  // one per row of device_slices
  bool has_backward = false;
};

Phases find_phases(const Model& model);

// When the update of an optimizer's step begins: after the last backward that ran inside of it, in whatever thread.
class OptimizerSteps {
 public:
  explicit OptimizerSteps(const Model& model);
  // `step` is an Optimizer.step range. Its start when it held no backward.
  int64_t update_start_ns(Row step) const;

 private:
  const Model& model_;
  std::vector<Row> backward_;  // outermost slices of backward passes, in order of their start
};

// The nn.Module calls of a trace: Kineto's "nn.Module: Linear_3", our recorder's "model.layers.3 (Linear)".
bool is_module_slice(const Model& model, Row host_row);
// "Linear_3", "model.layers.3"; REQUIRES: is_module_slice.
std::string_view module_name(const Model& model, Row host_row);
// "Linear"; REQUIRES: is_module_slice.
std::string_view module_type(const Model& model, Row host_row);

// A copy between host and device.
bool is_host_copy(const Model& model, Row device_row);

// The innermost host slice open on that lane at that moment (its end included); kNoRow when none is.
Row open_slice_at(const Model& model, LaneId lane, int64_t time_ns);

}  // namespace firelane::analyze
