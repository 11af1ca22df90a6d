// Power, load, clocks, temperature and memory of the GPUs, sampled beside the recording by a thread of its own.
//
//   NvmlSampler sampler(load_nvml(reason), {.interval_ms = 100});   // counters "GPU 0 power (W)", ...
//
// NVML is found at run time and its absence is a normal answer. A sample takes the driver about a millisecond on
// another core; nothing is sampled while the session is paused.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace firelane {

using NvmlDevice = struct NvmlDeviceHandle*;
struct NvmlUtilization {
  unsigned gpu_percent = 0;
  unsigned memory_percent = 0;
};
struct NvmlMemory {
  unsigned long long total = 0, free = 0, used = 0;
};

// All of them return 0 when they succeed. The last ones may be null (not offered by this driver).
struct NvmlApi {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_count)(unsigned* count) = nullptr;
  int (*device)(unsigned index, NvmlDevice* device) = nullptr;
  int (*power_mw)(NvmlDevice, unsigned* milliwatts) = nullptr;
  int (*energy_mj)(NvmlDevice, unsigned long long* millijoules) = nullptr;
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*clock_mhz)(NvmlDevice, int which, unsigned* mhz) = nullptr;
  int (*temperature)(NvmlDevice, int sensor, unsigned* celsius) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
};

std::optional<NvmlApi> load_nvml(std::string& reason) noexcept;

class NvmlSampler {
 public:
  struct Options {
    uint32_t interval_ms = 100;
  };
  NvmlSampler(const NvmlApi& api, const Options& options);
  ~NvmlSampler();
  NvmlSampler(const NvmlSampler&) = delete;
  NvmlSampler& operator=(const NvmlSampler&) = delete;

 private:
  void run() noexcept;
  void sample(unsigned index, NvmlDevice device) const noexcept;

  const NvmlApi api_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
  const int process_;
};

}  // namespace firelane
