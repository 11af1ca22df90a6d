// Where a GPU's hardware counters stand in a trace: under a process "GPU 0 Counters", as Kineto writes them.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace firelane {

inline std::string gpu_counters_process(int64_t device) { return "GPU " + std::to_string(device) + " Counters"; }

// The device; -1 for every other process.
inline int32_t device_of_gpu_counters(std::string_view process) {
  constexpr std::string_view kBefore = "GPU ";
  constexpr std::string_view kAfter = " Counters";
  if (!process.starts_with(kBefore) || !process.ends_with(kAfter)) return -1;
  if (process.size() <= kBefore.size() + kAfter.size()) return -1;
  const char* end = process.data() + process.size() - kAfter.size();
  int32_t device = -1;
  const auto [stop, error] = std::from_chars(process.data() + kBefore.size(), end, device);
  return error == std::errc() && stop == end && device >= 0 ? device : -1;
}

}  // namespace firelane
