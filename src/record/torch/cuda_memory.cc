#include "record/torch/cuda_memory.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <dlfcn.h>

#include <atomic>
#include <exception>

#include "record/core/thread_buffer.h"
#include "record/torch/cuda_memory_events.h"
#include "record/torch/late_start.h"

namespace firelane::torch_hooks {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

std::atomic<bool> g_cuda_on{false};

// torch's CUDA library is not linked, so that one build serves a torch without it, too.
caching::CUDAAllocator* find_allocator() {
  static std::atomic<void*> found{nullptr};
  void* symbol = found.load(std::memory_order_relaxed);
  if (symbol == nullptr) {
    void* library = ::dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return nullptr;
    symbol = ::dlsym(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
    found.store(symbol, std::memory_order_relaxed);
  }
  return symbol == nullptr ? nullptr : static_cast<std::atomic<caching::CUDAAllocator*>*>(symbol)->load();
}

// CUDA has been started by now, or is being started by another thread, whose end is waited for.
template <typename Context>
void wait_until_started(Context& context) {
  if constexpr (requires { context.lazyInitDevice(c10::DeviceType::CUDA); }) {
    context.lazyInitDevice(c10::DeviceType::CUDA);
  } else {
    context.lazyInitCUDA();
  }
}

bool is_recording_with_cuda() noexcept { return record::is_recording() && is_cuda_started(); }

void attach(caching::CUDAAllocator& allocator, record::Session& session) {
  wait_until_started(at::globalContext());
  static bool attached = false;
  if (!attached) allocator.attachAllocatorTraceTracker(cuda_memory::on_event);
  attached = true;
  cuda_memory::open();
  cuda_memory::snapshot_taken(allocator.snapshot().segments, session);
  g_cuda_on = true;
}

void attach_or_say_why(caching::CUDAAllocator& allocator, record::Session& session) noexcept {
  try {
    attach(allocator, session);
  } catch (const std::exception& error) {
    cuda_memory::give_up();
    session.add_loss(std::string("GPU memory: ") + error.what(), 0);
  }
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

void enable_cuda_memory_hook(record::Session& session) noexcept {
  forget_late_start();
  try {
    caching::CUDAAllocator* allocator = find_allocator();
    if (allocator == nullptr) {
      session.add_loss("GPU memory: this torch has no CUDA", 0);
    } else if (allocator->initialized()) {
      attach_or_say_why(*allocator, session);
    } else {
      begin_when(is_recording_with_cuda, [allocator, &session] { attach_or_say_why(*allocator, session); });
    }
  } catch (const std::exception& error) {
    session.add_loss(std::string("GPU memory: ") + error.what(), 0);
  }
}

void disable_cuda_memory_hook(record::Session& session) noexcept {
  forget_late_start();
  if (!g_cuda_on.exchange(false)) return;
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

}  // namespace firelane::torch_hooks
