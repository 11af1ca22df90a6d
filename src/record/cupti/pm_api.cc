#include "record/cupti/pm_api.h"

#include <exception>

#include "record/cupti/symbols.h"

namespace firelane::cupti {

std::optional<PmApi> load_pm_sampling(std::string& reason) noexcept {
#if FIRELANE_PM_SAMPLING
  void* library = open_cupti();
  PmApi api;
  bool complete = library != nullptr;
#define FL_FIND(field, function, params) complete = complete && find_symbol(library, #function, api.field);
  FL_PM_FUNCTIONS(FL_FIND)
#undef FL_FIND
  if (complete) return api;
  reason = "this CUPTI has no PM sampling, which needs CUDA 12.6; update torch or CUDA";
#else
  reason = "this recorder was built with CUPTI's headers from before CUDA 12.6; build one with newer headers";
#endif
  return std::nullopt;
}

std::string explain_metrics(const CuptiApi& api, CUptiResult result) {
  const char* text = nullptr;
  api.result_string(result, &text);
  const std::string name = text != nullptr ? text : "CUPTI error " + std::to_string(static_cast<int>(result));
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return name +
             ": the GPU's counters are for administrators only; load the driver with "
             "NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN (docker run --cap-add=SYS_ADMIN)";
    case CUPTI_ERROR_HARDWARE_BUSY:
    case CUPTI_ERROR_INVALID_OPERATION:
      return name + ": another profiler (DCGM, nsys, ncu, torch.profiler) holds the GPU's counters; stop it first";
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_INVALID_DEVICE:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
    case CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
#if CUPTI_API_VERSION >= 26
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
#endif
      return name + ": this GPU or machine does not allow it; PM sampling needs Turing or newer, without MIG or WSL";
    default: return name + ": another profiler in this process may hold the counters, or the driver is too old";
  }
}

}  // namespace firelane::cupti
