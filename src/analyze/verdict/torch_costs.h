// What torch.profiler adds to the program for each event that it records, on the host that recorded the trace.
//
// Recording an event is work of the same kind as dispatching an operator: both take longer by the same factor on a slow
// host, and hosts differ by a factor of three. So the costs are kept in units of host time, and the unit is read from
// the trace: from the time between the starts of neighboring outermost operators, by what a unit's worth of events lies
// in between. Stretches in which the host waits, computes or runs the user's code are longer; a low quantile leaves
// them out. The first recorded steps can be slower than the others, as torch.profiler touches its buffers for the first
// time: each step has its own pace where it holds enough.
//
// Fitted by bench/diagnose (library.md): programs of its tuning half, recorded and timed without a profiler. Without a
// device, where nothing but the host takes time, torch_stretches.h knows better: these costs are then for traces of
// others, and for those too short to tell.
#pragma once

#include <vector>

#include "analyze/graph/graph.h"
#include "analyze/host/host_time.h"
#include "analyze/steps/find_steps.h"
#include "model/model.h"

namespace firelane::analyze {

// Whether operators were recorded with the shapes of their inputs.
bool has_shapes(const Model& model);

// Whether torch.profiler itself wrote the trace: converted traces of other tools have its keys, too.
bool is_by_torch(const Model& model);

struct TorchCosts {
  SliceCosts costs;
  std::vector<double> pace;  // by step: how much slower the host was in it than `costs` say; empty: not known
};

TorchCosts torch_costs(const Model& model, const HostTime& host, const StepList& steps);

}  // namespace firelane::analyze
