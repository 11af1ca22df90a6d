// Under which category a slice is exported: one by which Kineto's tools, and our own reader, know what it is.
//
// Traces of torch.profiler and of our recorder have such categories already. Others have words of their own, or none:
// these rows get the category of their kind, and what the trace said stays in the details (kernel_details.op_category).
#pragma once

#include <array>
#include <string_view>

#include "model/model.h"

namespace firelane::describe {

inline bool has_kineto_categories(const Model& model) {
  const Origin origin = model.info.origin;
  return origin == Origin::kKineto || origin == Origin::kFirelane || origin == Origin::kOther;
}

inline std::string_view host_category(const Model& model, Row row) {
  const std::string_view own = model.text(model.host_slices.category[row]);
  if (has_kineto_categories(model)) return own;
  switch (model.host_slices.kind[row]) {
    case HostKind::kOp: return "cpu_op";
    case HostKind::kAnnotation: return "user_annotation";
    case HostKind::kPython: return "python_function";
    case HostKind::kRuntime: return own.ends_with("_runtime") ? own : "cuda_runtime";
    case HostKind::kDriver: return own.ends_with("_driver") ? own : "cuda_driver";
    case HostKind::kOverhead: return "overhead";
    case HostKind::kSpan: return "Trace";
    default: return own;
  }
}

// For its kind, whatever the trace says.
inline std::string_view category_of(DeviceKind kind) {
  constexpr std::array<std::string_view, kDeviceKindCount> kCategories = {
      "kernel",     "gpu_memcpy",      "gpu_memset",          "cuda_sync",
      "cuda_event", "collective_comm", "gpu_user_annotation", "device_other"};
  return kCategories[static_cast<size_t>(kind)];
}

inline std::string_view device_category(const Model& model, Row row) {
  return has_kineto_categories(model) ? model.text(model.device_slices.category[row])
                                      : category_of(model.device_slices.kind[row]);
}

// For formats without labels of processes: MTIA and HPU have categories of host calls on lanes of the device, too.
inline std::string_view plain_device_category(const Model& model, Row row) {
  const std::string_view category = device_category(model, row);
  const bool is_hosts = category.ends_with("_runtime") || category == "hpu_op";
  return is_hosts ? category_of(model.device_slices.kind[row]) : category;
}

}  // namespace firelane::describe
