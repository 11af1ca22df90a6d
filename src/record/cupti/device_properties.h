// What the GPUs of this process are, by the driver: for the trace's deviceProperties.
#pragma once

#include <string>

namespace firelane {

// A JSON list in Kineto's form; "" when the driver is not there or the program has not started CUDA yet.
std::string device_properties_json();

}  // namespace firelane
