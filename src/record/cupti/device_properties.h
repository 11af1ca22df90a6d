// What the GPUs of this process are, by the driver: for the trace's deviceProperties, and which NVML shall sample.
#pragma once

#include <string>
#include <vector>

namespace firelane::cupti {

// A JSON list in Kineto's form; "" when the driver is not there or the program has not started CUDA yet.
std::string device_properties_json();

// By CUDA's number, "0000:3b:00.0"; "" for a GPU that the process can see, but has no context on. Empty as above.
std::vector<std::string> used_device_bus_ids();

}  // namespace firelane::cupti
