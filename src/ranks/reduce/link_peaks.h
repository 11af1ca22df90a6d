// What the links between the GPUs of one machine could carry at best. Private to ranks/reduce.
#pragma once

#include <string_view>

namespace firelane::ranks {

// GB/s of all links of a GPU together, one way; 0 when the GPU has none, or may have none, or is not known. By the name
// that the driver gives: "NVIDIA H200".
double link_peak_gb_s(std::string_view device_name);

}  // namespace firelane::ranks
