// Which CUDA calls are worth recording: those that queue device work, wait for it, or manage memory. A training step
// makes twenty times as many others (cudaGetDevice, cudaPeekAtLastError, cuCtxGetCurrent, ...).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/cupti/api.h"

namespace firelane::cupti {

// "cudaLaunchKernel_v7000", "__cudaLaunchKernel_v13000" -> "cudaLaunchKernel"; "cuMemcpyHtoDAsync_v2" stays.
std::string_view plain_call_name(std::string_view name);
bool is_wanted_call(std::string_view plain_name);

struct CallIds {
  std::vector<CUpti_CallbackId> runtime;
  std::vector<CUpti_CallbackId> driver;
};
// The ids of the calls that this CUPTI knows: of those worth recording, and of all others.
CallIds wanted_calls(const CuptiApi& api);
CallIds unwanted_calls(const CuptiApi& api);

// Ids are below this, including those of libraries newer than our headers.
inline constexpr uint32_t kRuntimeIdLimit = CUPTI_RUNTIME_TRACE_CBID_SIZE + 128;
inline constexpr uint32_t kDriverIdLimit = CUPTI_DRIVER_TRACE_CBID_SIZE + 128;

}  // namespace firelane::cupti
