#include "record/torch/graph_capture.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <cuda.h>
#include <dlfcn.h>

#include <exception>

#include "record/torch/cuda_memory.h"

namespace firelane::torch_hooks {
namespace {

using StreamIsCapturing = CUresult (*)(CUstream, CUstreamCaptureStatus*);

StreamIsCapturing find_query() noexcept {
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : reinterpret_cast<StreamIsCapturing>(::dlsym(driver, "cuStreamIsCapturing"));
}

// The driver's handle; null for the default stream, which cannot be captured, and where an older torch does not say it.
template <typename Guard>
CUstream handle_of(const Guard& guard, const c10::Stream& stream) {
  if constexpr (requires { guard.getStreamNativeHandle(stream); }) {
    return static_cast<CUstream>(guard.getStreamNativeHandle(stream));
  } else {
    return nullptr;
  }
}

}  // namespace

bool is_capturing_graph() noexcept {
  try {
    if (!is_cuda_started() || !c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) return false;
    static const StreamIsCapturing query = find_query();
    if (query == nullptr) return false;
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    for (c10::DeviceIndex device = 0; device < guard.deviceCount(); ++device) {
      const CUstream stream = handle_of(guard, guard.getStream({c10::DeviceType::CUDA, device}));
      CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
      if (stream != nullptr && query(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE) {
        return true;
      }
    }
  } catch (const std::exception&) {
  }
  return false;
}

}  // namespace firelane::torch_hooks
