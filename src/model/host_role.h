// What slices with a name of torch's own are there for, decided here and nowhere else: assemble() asks once for each
// name (HostSlices::role), analyses read the column.
#pragma once

#include <string_view>

#include "model/values.h"

namespace firelane {

// What the names begin with, as torch writes them. Our recorder and our other readers write the same.
inline constexpr std::string_view kStepName = "ProfilerStep#";
// "autograd::engine::evaluate_function: AddBackward0".
inline constexpr std::string_view kNodeName = "autograd::engine::evaluate_function: ";
// "gc: generation 2".
inline constexpr std::string_view kCollectionName = "gc: generation ";

constexpr HostRole role_of(std::string_view name) {
  const auto has = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (name.empty()) return HostRole::kNone;
  switch (name[0]) {  // all texts of a trace are asked for: most of them end here
    case 'P':
      return name.starts_with(kStepName) ? HostRole::kStep
             : name == "Python GC"       ? HostRole::kCollection
                                         : HostRole::kNone;
    case 'a': return name.starts_with("autograd::engine::") ? HostRole::kBackwardNode : HostRole::kNone;
    case 'e':
      if (!name.starts_with("enumerate(Data")) return HostRole::kNone;
      if (!name.starts_with("enumerate(DataLoader)#")) return HostRole::kOtherBatch;
      return has("SingleProcess")     ? HostRole::kBatchInProcess
             : has("MultiProcessing") ? HostRole::kBatchFromWorkers
                                      : HostRole::kBatch;
    case 'g':
      if (!name.starts_with(kCollectionName)) return HostRole::kNone;
      return name == "gc: generation 2" ? HostRole::kFullCollection : HostRole::kYoungCollection;
    case 'O':
      if (!name.starts_with("Optimizer.")) return HostRole::kNone;
      return name.starts_with("Optimizer.step#")        ? HostRole::kOptimizerStep
             : name.starts_with("Optimizer.zero_grad#") ? HostRole::kZeroGrad
                                                        : HostRole::kOptimizer;
    default: return HostRole::kNone;
  }
}

// A DataLoader hands over a batch.
constexpr bool is_of_data_loader(HostRole role) {
  return role == HostRole::kBatchInProcess || role == HostRole::kBatchFromWorkers || role == HostRole::kBatch;
}
// Anything that torch enumerates does: a DataPipe, too.
constexpr bool loads_batch(HostRole role) { return is_of_data_loader(role) || role == HostRole::kOtherBatch; }

constexpr bool is_of_optimizer(HostRole role) {
  return role == HostRole::kOptimizerStep || role == HostRole::kZeroGrad || role == HostRole::kOptimizer;
}

// A garbage collection whose generation the name says: our recorder's, on a frame's lane without being a function.
constexpr bool is_of_generation(HostRole role) {
  return role == HostRole::kYoungCollection || role == HostRole::kFullCollection;
}
constexpr bool is_collection(HostRole role) { return is_of_generation(role) || role == HostRole::kCollection; }

}  // namespace firelane
