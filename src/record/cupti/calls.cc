#include "record/cupti/calls.h"

#include <algorithm>

namespace firelane::cupti {
namespace {

// Beginnings of names. "cudaMemcpy" also stands for cudaMemcpyAsync, cudaMemcpy2D, ...
constexpr std::string_view kWanted[] = {
    "cudaLaunch",
    "cudaGraphLaunch",
    "cudaMemcpy",
    "cudaMemset",
    "cudaMemPrefetchAsync",
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaStreamWaitEvent",
    "cudaEventSynchronize",
    "cudaEventRecord",
    "cudaMalloc",
    "cudaFree",
    "cudaHostAlloc",
    "cudaHostRegister",
    "cudaHostUnregister",
    "cuLaunch",
    "cuGraphLaunch",
    "cuMemcpy",
    "cuMemset",
    "cuMemPrefetchAsync",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuEventSynchronize",
    "cuEventRecord",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemHostAlloc",
    "cuMemHostRegister",
    "cuMemCreate",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemRelease",
};

void collect(const CuptiApi& api, CUpti_CallbackDomain domain, uint32_t limit, bool wanted,
             std::vector<CUpti_CallbackId>& ids) {
  for (uint32_t id = 1; id < limit; ++id) {
    const char* name = nullptr;
    if (api.callback_name(domain, id, &name) != CUPTI_SUCCESS || name == nullptr) continue;
    if (is_wanted_call(plain_call_name(name)) == wanted) ids.push_back(id);
  }
}

CallIds collect(const CuptiApi& api, bool wanted) {
  CallIds ids;
  collect(api, CUPTI_CB_DOMAIN_RUNTIME_API, kRuntimeIdLimit, wanted, ids.runtime);
  collect(api, CUPTI_CB_DOMAIN_DRIVER_API, kDriverIdLimit, wanted, ids.driver);
  return ids;
}

}  // namespace

std::string_view plain_call_name(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  const size_t mark = name.rfind("_v");
  if (mark == std::string_view::npos || name.size() - mark < 6) return name;  // _v3020 at least
  const std::string_view digits = name.substr(mark + 2);
  return std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) ? name.substr(0, mark)
                                                                                                : name;
}

bool is_wanted_call(std::string_view plain_name) {
  return std::any_of(std::begin(kWanted), std::end(kWanted),
                     [&](std::string_view begin) { return plain_name.starts_with(begin); });
}

CallIds wanted_calls(const CuptiApi& api) { return collect(api, true); }
CallIds unwanted_calls(const CuptiApi& api) { return collect(api, false); }

}  // namespace firelane::cupti
