#include "record/torch/cuda_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>

#include "record/core/thread_buffer.h"

namespace firelane {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using Entry = caching::TraceEntry;

constexpr size_t kMaxDevices = 64;
constexpr uint8_t kCuda = static_cast<uint8_t>(c10::DeviceType::CUDA);
constexpr size_t kMaxBlocksInSnapshot = 1 << 14;

struct Totals {
  std::atomic<int64_t> allocated{0};
  std::atomic<int64_t> reserved{0};
};
std::atomic<bool> g_on{false};
std::array<Totals, kMaxDevices> g_totals;

// The allocator hands out blocks in units of 512 bytes; its own counts, and torch.profiler's, are of blocks.
int64_t block_bytes(size_t requested) { return static_cast<int64_t>((requested + 511) / 512 * 512); }

// REQUIRES: the device's allocator lock is held, as it is when torch calls.
void on_event(const Entry& e) {
  if (!g_on.load(std::memory_order_relaxed)) return;
  const auto device = static_cast<size_t>(e.device_);
  if (device >= kMaxDevices) return;
  Totals& totals = g_totals[device];
  MemoryRecord record{.address = e.addr_, .device_type = kCuda, .device = static_cast<int8_t>(e.device_)};
  const auto change = [](std::atomic<int64_t>& total, int64_t by) {
    total.store(total.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  };
  switch (e.action_) {
    case Entry::ALLOC:
      record.bytes = block_bytes(e.size_);
      change(totals.allocated, record.bytes);
      break;
    case Entry::FREE_REQUESTED:
      record.bytes = -block_bytes(e.size_);
      record.action = MemoryAction::kFree;
      change(totals.allocated, record.bytes);
      break;
    case Entry::FREE_COMPLETED:
      record.bytes = -block_bytes(e.size_);
      record.action = MemoryAction::kFreeCompleted;
      break;
    case Entry::SEGMENT_ALLOC:
    case Entry::SEGMENT_MAP:
    case Entry::SEGMENT_FREE:
    case Entry::SEGMENT_UNMAP: {
      const bool more = e.action_ == Entry::SEGMENT_ALLOC || e.action_ == Entry::SEGMENT_MAP;
      record.bytes = more ? static_cast<int64_t>(e.size_) : -static_cast<int64_t>(e.size_);
      record.action = MemoryAction::kSegment;
      change(totals.reserved, record.bytes);
      break;
    }
    case Entry::OOM:
      record.address = 0;
      record.bytes = static_cast<int64_t>(e.size_);
      record.action = MemoryAction::kOutOfMemory;
      break;
    default: return;
  }
  record.total_allocated_bytes = totals.allocated.load(std::memory_order_relaxed);
  record.total_reserved_bytes = totals.reserved.load(std::memory_order_relaxed);
  if (ThreadBuffer* b = recording_thread()) b->memory(now_ticks(), record);
}

// torch's CUDA library is not linked, so that one build serves a torch without it, too.
caching::CUDAAllocator* find_allocator() {
  void* library = ::dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* symbol = ::dlsym(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
  return symbol == nullptr ? nullptr : static_cast<std::atomic<caching::CUDAAllocator*>*>(symbol)->load();
}

// Live memory, by segment: [device, address, bytes, stream, [[bytes, requested, is allocated], ...]].
std::string snapshot_json(caching::CUDAAllocator& allocator) {
  const caching::SnapshotInfo snapshot = allocator.snapshot();
  std::string json = "[";
  size_t blocks = 0;
  for (const auto& segment : snapshot.segments) {
    if (blocks > kMaxBlocksInSnapshot) break;
    if (json.size() > 1) json += ", ";
    json += "[" + std::to_string(segment.device) + ", " + std::to_string(segment.address) + ", " +
            std::to_string(segment.total_size) + ", " + std::to_string(reinterpret_cast<uintptr_t>(segment.stream)) +
            ", [";
    for (const auto& block : segment.blocks) {
      if (json.back() == ']') json += ", ";
      json += "[" + std::to_string(block.size) + ", " + std::to_string(block.requested_size) +
              (block.allocated ? ", 1]" : ", 0]");
      ++blocks;
    }
    json += "]]";
  }
  return json + "]";
}

size_t device_count(caching::CUDAAllocator& allocator) {
  size_t highest = 0;
  for (const auto& segment : allocator.snapshot().segments) {
    highest = std::max(highest, static_cast<size_t>(segment.device) + 1);
  }
  return std::min(highest, kMaxDevices);
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
    if (!attached) allocator->attachAllocatorTraceTracker(on_event);
    attached = true;
    session.add_metadata("cuda_memory_at_start", snapshot_json(*allocator));
    constexpr auto kAll = static_cast<size_t>(0);
    for (size_t device = 0; device < device_count(*allocator); ++device) {
      const auto stats = allocator->getDeviceStats(static_cast<c10::DeviceIndex>(device));
      g_totals[device].allocated = stats.allocated_bytes[kAll].current;
      g_totals[device].reserved = stats.reserved_bytes[kAll].current;
    }
    g_on = true;
    return true;
  } catch (const std::exception& error) {
    reason = std::string("GPU memory: ") + error.what();
    return false;
  }
}

void disable_cuda_memory_hook(Session& session) noexcept {
  if (!g_on.exchange(false)) return;
  try {
    caching::CUDAAllocator* allocator = find_allocator();
    std::string json = "[";
    for (size_t device = 0; device < device_count(*allocator); ++device) {
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
