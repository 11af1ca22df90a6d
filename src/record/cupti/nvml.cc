#include "record/cupti/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

#include "base/own_thread.h"
#include "record/core/thread_buffer.h"
#include "record/cupti/symbols.h"

namespace firelane::cupti {
namespace {

constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
constexpr int kGpuSensor = 0;

void count(unsigned device, const char* what, double value) noexcept {
  record::ThreadBuffer* b = record::recording_thread();
  if (b == nullptr) return;
  char name[64];
  std::snprintf(name, sizeof name, "GPU %u %s", device, what);
  const uint64_t now = now_ticks();
  b->counter(now, b->text(name), value);
}

}  // namespace

std::optional<NvmlApi> load_nvml(std::string& reason) noexcept {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  NvmlApi api;
  if (library == nullptr || !find_symbol(library, "nvmlInit_v2", api.init) ||
      !find_symbol(library, "nvmlShutdown", api.shutdown) ||
      !find_symbol(library, "nvmlDeviceGetHandleByPciBusId_v2", api.device)) {
    reason = "GPU power: NVML (libnvidia-ml.so.1) was not found; it comes with the NVIDIA driver";
    return std::nullopt;
  }
  find_symbol(library, "nvmlDeviceGetPowerUsage", api.power_mw);
  find_symbol(library, "nvmlDeviceGetTotalEnergyConsumption", api.energy_mj);
  find_symbol(library, "nvmlDeviceGetUtilizationRates", api.utilization);
  find_symbol(library, "nvmlDeviceGetClockInfo", api.clock_mhz);
  find_symbol(library, "nvmlDeviceGetTemperature", api.temperature);
  find_symbol(library, "nvmlDeviceGetMemoryInfo", api.memory);
  if (const int result = api.init(); result != 0) {
    reason = "GPU power: NVML failed to start (error " + std::to_string(result) + "); nvidia-smi shows why";
    return std::nullopt;
  }
  return api;
}

NvmlSampler::NvmlSampler(const NvmlApi& api, const Options& options)
    : api_(api), options_(options), process_(::getpid()) {
  thread_ = start_own_thread("firelane-nvml", [this] { run(); });  // without one there are no samples
}

NvmlSampler::~NvmlSampler() {
  if (process_ != ::getpid()) {  // a forked child's copy: the thread is the parent's
    if (thread_.joinable()) thread_.detach();
    wake_.leave_to_parent();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_->notify_all();
  if (thread_.joinable()) thread_.join();
  api_.shutdown();
}

void NvmlSampler::wake() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_awake_ = true;
  }
  wake_->notify_all();
}

// Once more at the end, if the session still records.
void NvmlSampler::run() noexcept {
  std::unique_lock lock(mutex_);
  for (bool is_last = false; !is_last;) {
    is_last = stop_;
    is_awake_ = false;
    lock.unlock();
    sample_all();
    lock.lock();
    if (is_last) break;
    wake_->wait_for(lock, std::chrono::milliseconds(options_.interval_ms), [this] { return stop_ || is_awake_; });
  }
}

void NvmlSampler::sample_all() noexcept {
  if (!record::is_recording()) return;
  try {
    const std::vector<std::string> bus_ids = options_.bus_ids ? options_.bus_ids() : std::vector<std::string>();
    for (unsigned i = 0; i < bus_ids.size(); ++i) {
      NvmlDevice device = nullptr;
      if (!bus_ids[i].empty() && api_.device(bus_ids[i].c_str(), &device) == 0) sample(i, device);
    }
  } catch (const std::exception&) {  // no memory: no sample
  }
}

void NvmlSampler::sample(unsigned index, NvmlDevice device) const noexcept {
  unsigned number = 0;
  unsigned long long large = 0;
  NvmlUtilization load;
  NvmlMemory memory;
  if (api_.power_mw != nullptr && api_.power_mw(device, &number) == 0) count(index, "power (W)", number / 1e3);
  if (api_.energy_mj != nullptr && api_.energy_mj(device, &large) == 0) {
    count(index, "energy (J)", static_cast<double>(large) / 1e3);
  }
  if (api_.utilization != nullptr && api_.utilization(device, &load) == 0) {
    count(index, "utilization (%)", load.gpu_percent);
    count(index, "memory utilization (%)", load.memory_percent);
  }
  if (api_.clock_mhz != nullptr && api_.clock_mhz(device, kSmClock, &number) == 0) {
    count(index, "SM clock (MHz)", number);
  }
  if (api_.clock_mhz != nullptr && api_.clock_mhz(device, kMemoryClock, &number) == 0) {
    count(index, "memory clock (MHz)", number);
  }
  if (api_.temperature != nullptr && api_.temperature(device, kGpuSensor, &number) == 0) {
    count(index, "temperature (C)", number);
  }
  if (api_.memory != nullptr && api_.memory(device, &memory) == 0) {
    count(index, "memory used (MiB)", static_cast<double>(memory.used) / (1 << 20));
  }
}

}  // namespace firelane::cupti
