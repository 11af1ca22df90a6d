// The GPUs of this process, as the driver describes them: for the trace's deviceProperties, and for NVML to sample.
#pragma once

#include <string>
#include <vector>

namespace firelane::cupti {

// A JSON list in Kineto's form; "" if there is no driver or the program has not started CUDA yet.
std::string device_properties_json();

// By CUDA device index, "0000:3b:00.0"; "" for a GPU that is visible, but on which the process has no context. Empty as
// above.
std::vector<std::string> used_device_bus_ids();

}  // namespace firelane::cupti
