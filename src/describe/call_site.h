// Where a Python function or a C call was called from, as Kineto's arg "CallFrom" says it: "train.py:12".
//
// The model has the line; the file is that of the Python function around it, whose name holds it.
#pragma once

#include <string>
#include <string_view>

#include "model/model.h"

namespace firelane::describe {

// "lib/train.py" of "lib/train.py(12): step", torch's own of "nn.Module: Linear_0"; empty for anything else.
inline std::string_view file_of_function(const Model& model, Row row) {
  if (model.host_slices.module[row] == ModuleCall::kNumbered) return "torch/nn/modules/module.py";  // Module.__call__
  const std::string_view name = model.text(model.host_slices.name[row]);
  const size_t close = name.rfind("): ");
  const size_t open = close == std::string_view::npos ? close : name.rfind('(', close);
  return open == std::string_view::npos ? std::string_view() : name.substr(0, open);
}

// Empty where it is not known.
inline std::string call_from(const Model& model, Row row) {
  const HostSlices& host = model.host_slices;
  if (host.call_line[row] <= 0) return {};
  for (Row caller = host.parent[row]; caller != kNoRow; caller = host.parent[caller]) {
    if (host.kind[caller] != HostKind::kPython) continue;
    const std::string_view file = file_of_function(model, caller);
    if (!file.empty()) return std::string(file) + ":" + std::to_string(host.call_line[row]);
  }
  return {};
}

}  // namespace firelane::describe
