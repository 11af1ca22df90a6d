// Power, energy, utilization, clocks, temperature and memory of the GPUs that the process uses, sampled by a thread of
// its own during the recording.
//
//   NvmlSampler sampler(load_nvml(reason), {.bus_ids = used_device_bus_ids});   // counters "GPU 0 power (W)", ...
//
// NVML indexes all GPUs of the machine; traces use CUDA's indices, which depend on CUDA_VISIBLE_DEVICES. NVML is
// loaded at run time and may be missing. A sample takes the driver about a millisecond on another core; nothing is
// sampled while the session is paused.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "record/cupti/own_wake.h"

namespace firelane::cupti {

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
  int (*device)(const char* bus_id, NvmlDevice* device) = nullptr;
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
    // By CUDA device index; "": not used. Called before each sample, on the sampler's thread.
    std::function<std::vector<std::string>()> bus_ids;
  };
  NvmlSampler(const NvmlApi& api, const Options& options);
  ~NvmlSampler();
  NvmlSampler(const NvmlSampler&) = delete;
  NvmlSampler& operator=(const NvmlSampler&) = delete;

  // Takes the next sample immediately, without waiting for it: cumulative counters need one where the recording begins.
  void wake() noexcept;

 private:
  void run() noexcept;
  void sample_all() noexcept;
  void sample(unsigned index, NvmlDevice device) const noexcept;

  const NvmlApi api_;
  const Options options_;
  std::mutex mutex_;
  OwnWake wake_;
  bool stop_ = false;  // guarded by mutex_, as the next
  bool is_awake_ = false;
  std::thread thread_;
  const int process_;
};

}  // namespace firelane::cupti
