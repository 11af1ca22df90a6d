#include "record/torch/cuda_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <dlfcn.h>

#include <atomic>
#include <exception>

#include "record/torch/cuda_memory_events.h"

namespace firelane {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

std::atomic<bool> g_on{false};

// torch's CUDA library is not linked, so that one build serves a torch without it, too.
caching::CUDAAllocator* find_allocator() {
  void* library = ::dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* symbol = ::dlsym(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
  return symbol == nullptr ? nullptr : static_cast<std::atomic<caching::CUDAAllocator*>*>(symbol)->load();
}

}  // namespace

bool is_cuda_started() noexcept {
  try {
    caching::CUDAAllocator* allocator = find_allocator();
    return allocator != nullptr && allocator->initialized();
  } catch (const std::exception&) {
    return false;
  }
}

bool enable_cuda_memory_hook(Session& session, std::string& reason) noexcept {
  try {
    caching::CUDAAllocator* allocator = find_allocator();
    if (allocator == nullptr) {
      reason = "GPU memory: this torch has no CUDA";
      return false;
    }
    if (!allocator->initialized()) {
      reason =
          "GPU memory: CUDA was not started yet when the recording began; use the GPU once before, or record later";
      return false;
    }
    static bool attached = false;
    if (!attached) allocator->attachAllocatorTraceTracker(cuda_memory::on_event);
    attached = true;
    cuda_memory::open();
    cuda_memory::snapshot_taken(allocator->snapshot().segments, session);
    g_on = true;
    return true;
  } catch (const std::exception& error) {
    cuda_memory::give_up();
    reason = std::string("GPU memory: ") + error.what();
    return false;
  }
}

void disable_cuda_memory_hook(Session& session) noexcept {
  if (!g_on.exchange(false)) return;
  cuda_memory::close();
  try {
    caching::CUDAAllocator* allocator = find_allocator();
    std::string json = "[";
    for (size_t device = 0; device < cuda_memory::device_count(); ++device) {
      const auto stats = allocator->getDeviceStats(static_cast<c10::DeviceIndex>(device));
      if (device > 0) json += ", ";
      json += "{\"device\": " + std::to_string(device) +
              ", \"allocated\": " + std::to_string(stats.allocated_bytes[0].current) +
              ", \"peak_allocated\": " + std::to_string(stats.allocated_bytes[0].peak) +
              ", \"reserved\": " + std::to_string(stats.reserved_bytes[0].current) +
              ", \"peak_reserved\": " + std::to_string(stats.reserved_bytes[0].peak) + "}";
    }
    session.add_metadata("cuda_memory_at_stop", json + "]");
  } catch (const std::exception&) {
  }
}

}  // namespace firelane
