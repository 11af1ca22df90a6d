#include "record/torch/cpu_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>

#include "record/core/thread_buffer.h"
#include "record/torch/size_table.h"

namespace firelane::torch_hooks {
namespace {

// All of it constant-initialised and never destroyed: blocks are freed until the process ends.
std::atomic<c10::Allocator*> g_inner{nullptr};
std::atomic<c10::DeleterFnPtr> g_inner_deleter{nullptr};
std::atomic<bool> g_cpu_on{false};
std::atomic<int64_t> g_total{0};
std::atomic<uint64_t> g_untracked{0};
constinit SizeTable g_sizes;

void record(void* address, int64_t bytes, int64_t total, format::MemoryAction action) noexcept {
  record::ThreadBuffer* b = record::recording_thread();
  if (b == nullptr) return;
  b->memory(now_ticks(), {.address = reinterpret_cast<uintptr_t>(address),
                          .bytes = bytes,
                          .total_allocated_bytes = total,
                          .total_reserved_bytes = 0,
                          .device_type = static_cast<uint8_t>(c10::DeviceType::CPU),
                          .device = -1,
                          .action = action});
}

// Freed by us or by the allocator's own function: the memory is the same. Between recordings, too, blocks leave the
// table: a later recording sees the frees of what is left, as torch's does.
void report_and_free(void* address) {
  if (address != nullptr) {
    if (const int64_t bytes = g_sizes.take(reinterpret_cast<uintptr_t>(address)); bytes >= 0) {
      const int64_t total = g_total.fetch_sub(bytes, std::memory_order_relaxed) - bytes;
      if (g_cpu_on.load(std::memory_order_relaxed)) record(address, -bytes, total, format::MemoryAction::kFree);
    }
  }
  g_inner_deleter.load(std::memory_order_relaxed)(address);
}

class RecordingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    c10::Allocator* inner = g_inner.load(std::memory_order_relaxed);
    if (!g_cpu_on.load(std::memory_order_relaxed)) return inner->allocate(bytes);
    c10::DataPtr block = allocate_or_report(inner, bytes);
    void* address = block.get();
    if (address == nullptr) return block;
    // Only what our deleter can undo: a block whose context is itself.
    if (block.get_context() != address ||
        !block.compare_exchange_deleter(g_inner_deleter.load(std::memory_order_relaxed), report_and_free)) {
      g_untracked.fetch_add(1, std::memory_order_relaxed);
    } else if (!g_sizes.insert(reinterpret_cast<uintptr_t>(address), static_cast<int64_t>(bytes))) {
      g_untracked.fetch_add(1, std::memory_order_relaxed);
    }
    const auto size = static_cast<int64_t>(bytes);
    record(address, size, g_total.fetch_add(size, std::memory_order_relaxed) + size, format::MemoryAction::kAlloc);
    return block;
  }
  bool is_simple_data_ptr(const c10::DataPtr& block) const override { return inner()->is_simple_data_ptr(block); }
  // Good for blocks of either kind, as both end in the same function.
  c10::DeleterFnPtr raw_deleter() const override { return report_and_free; }
  void copy_data(void* to, const void* from, size_t bytes) const override { inner()->copy_data(to, from, bytes); }

 private:
  static c10::Allocator* inner() noexcept { return g_inner.load(std::memory_order_relaxed); }
  static c10::DataPtr allocate_or_report(c10::Allocator* inner, size_t bytes) {
    try {
      return inner->allocate(bytes);
    } catch (...) {
      record(nullptr, static_cast<int64_t>(bytes), g_total.load(std::memory_order_relaxed),
             format::MemoryAction::kOutOfMemory);
      throw;
    }
  }
};

RecordingAllocator& recording_allocator() {
  static auto* const allocator = new RecordingAllocator();  // storages point to it: never destroyed
  return *allocator;
}

// torch only accepts an allocator of at least the priority of the current one, which it does not reveal.
bool put_in_place(c10::Allocator* allocator) noexcept {
  for (int priority = 0; priority < 256 && c10::GetAllocator(c10::DeviceType::CPU) != allocator; ++priority) {
    c10::SetAllocator(c10::DeviceType::CPU, allocator, static_cast<uint8_t>(priority));
  }
  return c10::GetAllocator(c10::DeviceType::CPU) == allocator;
}

}  // namespace

bool enable_cpu_memory_hook(const char*& reason) noexcept {
  c10::Allocator* current = c10::GetAllocator(c10::DeviceType::CPU);
  if (current == &recording_allocator()) current = g_inner.load();
  if (current == nullptr || current->raw_deleter() == nullptr) {
    reason = "CPU memory: the program's allocator has no raw deleter";
    return false;
  }
  // Blocks in the wild carry our deleter, which frees by the first allocator's function.
  if (g_inner_deleter.load() != nullptr && g_inner_deleter.load() != current->raw_deleter()) {
    reason = "CPU memory: the program replaced its allocator after the first recording";
    return false;
  }
  if (!g_sizes.map()) {
    reason = "CPU memory: no address space for the table of block sizes";
    return false;
  }
  g_untracked = 0;
  g_inner = current;
  g_inner_deleter = current->raw_deleter();
  g_cpu_on = true;
  if (put_in_place(&recording_allocator())) return true;
  g_cpu_on = false;
  reason = "CPU memory: torch did not accept the recording allocator";
  return false;
}

void disable_cpu_memory_hook() noexcept {
  if (!g_cpu_on.exchange(false)) return;
  // An allocator that was set after ours stays.
  if (c10::GetAllocator(c10::DeviceType::CPU) == &recording_allocator()) put_in_place(g_inner.load());
}

uint64_t cpu_memory_untracked() noexcept { return g_untracked.load(std::memory_order_relaxed); }

}  // namespace firelane::torch_hooks
