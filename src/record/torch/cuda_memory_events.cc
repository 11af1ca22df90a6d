#include "record/torch/cuda_memory_events.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <string>

#include "format/notes.h"
#include "record/core/thread_buffer.h"

namespace firelane::torch_hooks::cuda_memory {
namespace {

using Entry = c10::cuda::CUDACachingAllocator::TraceEntry;
using Segment = c10::cuda::CUDACachingAllocator::SegmentInfo;
using PoolId = decltype(Segment::owner_private_pool_id);

constexpr size_t kMaxDevices = 64;
constexpr uint8_t kCuda = static_cast<uint8_t>(c10::DeviceType::CUDA);
constexpr int64_t kUnknown = -1;
constexpr size_t kNotesBytes = 256 << 10;

// Written under the lock of the device's allocator; at the end of a snapshot `before` by the thread that took it.
struct Device {
  std::atomic<bool> is_recorded{false};
  std::atomic<uint64_t> snapshot_ticks{0};
  std::atomic<int64_t> allocated{0};  // since the snapshot
  std::atomic<int64_t> reserved{0};
  std::atomic<int64_t> allocated_before{kUnknown};  // until the snapshot is back
  std::atomic<int64_t> reserved_before{kUnknown};
};
std::atomic<bool> g_is_open{false};
std::array<Device, kMaxDevices> g_devices;
constinit thread_local bool t_takes_snapshot __attribute__((tls_model("initial-exec"))) = false;

void begin(Device& device) {
  device.allocated_before.store(kUnknown, std::memory_order_relaxed);
  device.reserved_before.store(kUnknown, std::memory_order_relaxed);
  device.allocated.store(0, std::memory_order_relaxed);
  device.reserved.store(0, std::memory_order_relaxed);
  device.snapshot_ticks.store(now_ticks(), std::memory_order_relaxed);
  device.is_recorded.store(true, std::memory_order_relaxed);
}

// The allocator hands out blocks in units of 512 bytes.
int64_t block_bytes(size_t requested) { return static_cast<int64_t>((requested + 511) / 512 * 512); }

uint64_t pool_number(const PoolId& pool) { return pool.first << 32 | (pool.second & 0xFFFFFFFF); }

// Older versions of torch do not say it.
template <typename T>
uint64_t pool_of(const T& event) {
  if constexpr (requires { event.mempool_; }) {
    return pool_number(event.mempool_);
  } else {
    return 0;
  }
}

void change(std::atomic<int64_t>& total, int64_t by) {
  total.store(total.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

int64_t total(const std::atomic<int64_t>& before, const std::atomic<int64_t>& since) {
  const int64_t known = before.load(std::memory_order_acquire);
  return known == kUnknown ? kUnknown : known + since.load(std::memory_order_relaxed);
}

// False for what is no event of memory.
bool translate(const Entry& e, Device& device, record::MemoryRecord& record) {
  const auto bytes = static_cast<int64_t>(e.size_);
  switch (e.action_) {
    case Entry::ALLOC:
      record.bytes = block_bytes(e.size_);
      change(device.allocated, record.bytes);
      return true;
    case Entry::FREE_REQUESTED:
      record.bytes = -block_bytes(e.size_);
      record.action = format::MemoryAction::kFree;
      change(device.allocated, record.bytes);
      return true;
    case Entry::FREE_COMPLETED:
      record.bytes = -block_bytes(e.size_);
      record.action = format::MemoryAction::kFreeCompleted;
      return true;
    case Entry::SEGMENT_ALLOC:
    case Entry::SEGMENT_MAP:
    case Entry::SEGMENT_FREE:
    case Entry::SEGMENT_UNMAP: {
      const bool is_more = e.action_ == Entry::SEGMENT_ALLOC || e.action_ == Entry::SEGMENT_MAP;
      record.bytes = is_more ? bytes : -bytes;
      record.action = format::MemoryAction::kSegment;
      record.place->is_mapped = e.action_ == Entry::SEGMENT_MAP || e.action_ == Entry::SEGMENT_UNMAP;
      change(device.reserved, record.bytes);
      return true;
    }
    case Entry::OOM:
      record.address = 0;  // torch's is the number of free bytes
      record.bytes = bytes;
      record.action = format::MemoryAction::kOutOfMemory;
      return true;
    default: return false;
  }
}

format::BlockState state_of(const c10::cuda::CUDACachingAllocator::BlockInfo& block) {
  if (block.allocated) return format::BlockState::kAllocated;
  return block.active ? format::BlockState::kWaiting : format::BlockState::kFree;
}

void write_segments(const std::vector<Segment>& segments, record::Session& session) {
  std::string items;
  format::NotesWriter notes(items);
  std::array<bool, kMaxDevices> has_segments{};
  std::vector<format::SegmentBlock> blocks;
  for (const Segment& segment : segments) {
    const auto device = static_cast<size_t>(segment.device);
    if (device >= kMaxDevices) continue;
    has_segments[device] = true;
    blocks.clear();
    for (const auto& block : segment.blocks) blocks.push_back({.bytes = block.size, .state = state_of(block)});
    notes.segment(g_devices[device].snapshot_ticks,
                  {.device_type = kCuda,
                   .device = static_cast<int8_t>(segment.device),
                   .address = segment.address,
                   .bytes = segment.total_size,
                   .stream = reinterpret_cast<uintptr_t>(segment.stream),
                   .pool = pool_number(segment.owner_private_pool_id),
                   .is_expandable = segment.is_expandable,
                   .is_large = segment.is_large},
                  blocks);
    if (items.size() < kNotesBytes) continue;
    session.add_notes(items);
    items.clear();
  }
  // A device without memory says so: its totals are known as well.
  for (size_t device = 0; device < device_count(); ++device) {
    if (!has_segments[device])
      notes.segment(g_devices[device].snapshot_ticks, {.device_type = kCuda, .device = static_cast<int8_t>(device)},
                    {});
  }
  if (!items.empty()) session.add_notes(items);
}

}  // namespace

void on_event(const Entry& e) noexcept {
  if (!g_is_open.load(std::memory_order_relaxed)) return;
  const auto index = static_cast<size_t>(e.device_);
  if (index >= kMaxDevices) return;
  Device& device = g_devices[index];
  if (e.action_ == Entry::SNAPSHOT && t_takes_snapshot) begin(device);
  if (!device.is_recorded.load(std::memory_order_relaxed)) return;
  record::MemoryRecord record{
      .address = e.addr_,
      .device_type = kCuda,
      .device = static_cast<int8_t>(e.device_),
      .place = format::MemoryPlace{.stream = reinterpret_cast<uintptr_t>(e.stream_), .pool = pool_of(e)}};
  if (!translate(e, device, record)) return;
  record.total_allocated_bytes = total(device.allocated_before, device.allocated);
  record.total_reserved_bytes = total(device.reserved_before, device.reserved);
  if (record::ThreadBuffer* b = record::recording_thread()) b->memory(now_ticks(), record);
}

void open() noexcept {
  if (!g_is_open) {
    for (Device& device : g_devices) device.is_recorded = false;
  }
  t_takes_snapshot = true;
  g_is_open = true;
}

void give_up() noexcept { t_takes_snapshot = false; }

void snapshot_taken(const std::vector<Segment>& segments, record::Session& session) {
  t_takes_snapshot = false;
  std::array<int64_t, kMaxDevices> allocated{};
  std::array<int64_t, kMaxDevices> reserved{};
  for (const Segment& segment : segments) {
    const auto index = static_cast<size_t>(segment.device);
    if (index >= kMaxDevices) continue;
    allocated[index] += static_cast<int64_t>(segment.allocated_size);
    reserved[index] += static_cast<int64_t>(segment.total_size);
    if (!g_devices[index].is_recorded) begin(g_devices[index]);
  }
  for (size_t i = 0; i < kMaxDevices; ++i) {
    g_devices[i].reserved_before.store(reserved[i], std::memory_order_release);
    g_devices[i].allocated_before.store(allocated[i], std::memory_order_release);
  }
  write_segments(segments, session);
}

void close() noexcept { g_is_open = false; }

size_t device_count() noexcept {
  size_t count = 0;
  for (size_t i = 0; i < kMaxDevices; ++i) {
    if (g_devices[i].is_recorded.load(std::memory_order_relaxed)) count = i + 1;
  }
  return count;
}

}  // namespace firelane::torch_hooks::cuda_memory
