#include "record/cupti/api.h"
#include "record/cupti/symbols.h"

#include <dlfcn.h>

#include "base/environment.h"

namespace firelane::cupti {
namespace {

constexpr uint32_t kOldestVersion = 18;  // CUDA 12.0: graph ids in every record

}  // namespace

void* open_cupti() noexcept {
  // torch's wheels load theirs by name: the same one must be used.
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    if (void* library = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) return library;
  }
  if (const char* path = environment::value_of(environment::kCupti)) return ::dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so", "/usr/local/cuda/lib64/libcupti.so",
                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"}) {
    if (void* library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

std::optional<CuptiApi> load_cupti(std::string& reason) noexcept {
  void* library = open_cupti();
  if (library == nullptr) {
    reason =
        "GPU: CUPTI is not installed; `pip install nvidia-cuda-cupti` or set FIRELANE_CUPTI to the path of libcupti.so";
    return std::nullopt;
  }
  CuptiApi api;
  const bool complete = find_symbol(library, "cuptiGetVersion", api.get_version) &&
                        find_symbol(library, "cuptiGetTimestamp", api.get_timestamp) &&
                        find_symbol(library, "cuptiActivityRegisterCallbacks", api.register_callbacks) &&
                        find_symbol(library, "cuptiActivityEnable", api.enable) &&
                        find_symbol(library, "cuptiActivityDisable", api.disable) &&
                        find_symbol(library, "cuptiActivityFlushAll", api.flush_all) &&
                        find_symbol(library, "cuptiActivityGetNextRecord", api.next_record) &&
                        find_symbol(library, "cuptiActivityGetNumDroppedRecords", api.dropped_records) &&
                        find_symbol(library, "cuptiGetCallbackName", api.callback_name) &&
                        find_symbol(library, "cuptiGetResultString", api.result_string) &&
                        find_symbol(library, "cuptiGetThreadIdType", api.get_thread_id_type) &&
                        find_symbol(library, "cuptiSetThreadIdType", api.set_thread_id_type) &&
                        find_symbol(library, "cuptiSubscribe", api.subscribe) &&
                        find_symbol(library, "cuptiUnsubscribe", api.unsubscribe) &&
                        find_symbol(library, "cuptiEnableCallback", api.enable_callback);
  find_symbol(library, "cuptiActivityEnableRuntimeApi", api.enable_runtime_call);
  find_symbol(library, "cuptiActivityEnableDriverApi", api.enable_driver_call);
  find_symbol(library, "cuptiFinalize", api.finalize);
  if (void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
    find_symbol(driver, "cuDriverGetVersion", api.driver_call);
  }
  uint32_t version = 0;
  if (!complete || api.get_version(&version) != CUPTI_SUCCESS || version < kOldestVersion) {
    reason = "GPU: CUPTI is older than CUDA 12.0 (version " + std::to_string(version) + "); update torch or CUDA";
    return std::nullopt;
  }
  return api;
}

namespace {

// CUDA's version, 1000 * major + 10 * minor, as "12.4".
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// "" unless the driver is for an older CUDA than CUPTI: within a major version they work together. CUPTI counted its
// versions from 18 on through CUDA 12; since then 130001 is CUDA 13.0's.
std::string older_driver(const CuptiApi& api) {
  uint32_t cupti = 0;
  int driver = 0;
  if (api.driver_call == nullptr || api.driver_call(&driver) != CUDA_SUCCESS) return {};
  if (api.get_version(&cupti) != CUPTI_SUCCESS) return {};
  const int major = cupti >= 100'000 ? static_cast<int>(cupti / 10'000) : 12;
  if (driver / 1000 >= major) return {};
  return "the driver is for CUDA " + version_text(driver) + ", CUPTI for CUDA " + std::to_string(major) +
         "; update the driver, or use a torch for CUDA " + std::to_string(driver / 1000);
}

}  // namespace

std::string explain(const CuptiApi& api, CUptiResult result) {
  const char* text = nullptr;
  api.result_string(result, &text);
  std::string reason = text != nullptr ? text : "CUPTI error " + std::to_string(static_cast<int>(result));
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return reason + ": allow profiling for all users (driver option NVreg_RestrictProfilingToAdminUsers=0)";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_HARDWARE_BUSY:
      return reason + ": another profiler (nsys, ncu, torch.profiler) is using the GPU; run without it";
    default: break;
  }
  if (const std::string older = older_driver(api); !older.empty()) return reason + ": " + older;
  switch (result) {
    case CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED:
    case CUPTI_ERROR_NOT_COMPATIBLE:
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED:
      return reason + ": this driver, GPU or machine does not allow tracing; update the driver";
    case CUPTI_ERROR_NOT_INITIALIZED:
    case CUPTI_ERROR_INVALID_DEVICE: return reason + ": no NVIDIA GPU can be used here; nvidia-smi shows why";
    default: return reason + ": the trace has the CPU only";
  }
}

}  // namespace firelane::cupti
