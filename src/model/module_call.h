// How a Python function's name says that it is the call of an nn.Module. Readers ask once (HostSlices::module);
// everybody else reads the column.
#pragma once

#include <string_view>

#include "model/values.h"

namespace firelane {

// "nn.Module: Linear_3", as Kineto writes it and as our recorder names the frames of nn.Module.__call__.
inline constexpr std::string_view kNumberedModule = "nn.Module: ";

// Of a function that was recorded as a frame. What our recorder writes as modules (kPath) says so by itself.
constexpr ModuleCall module_call_of_frame(std::string_view name) {
  return name.starts_with(kNumberedModule) ? ModuleCall::kNumbered : ModuleCall::kNone;
}

}  // namespace firelane
