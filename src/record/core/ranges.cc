#include "record/core/ranges.h"

#include <atomic>

#include "record/core/thread_buffer.h"

namespace firelane::record {

uint64_t begin_range(std::string_view name, std::string_view args) noexcept {
  // Odd numbers: torch's ranges have the addresses of their objects as ids.
  static std::atomic<uint64_t> next{1};
  ThreadBuffer* b = recording_thread();
  if (b == nullptr) return 0;
  const uint64_t id = next.fetch_add(2, std::memory_order_relaxed);
  const TextSlot slot = b->text(name);
  b->async_begin(now_ticks(), slot, format::Scope::kUser, id);
  if (!args.empty()) b->attribute(format::Attribute::kExtraArgs, b->text(args));
  return id;
}

void end_range(uint64_t id) noexcept {
  const uint64_t ticks = now_ticks();
  if (id == 0) return;
  if (ThreadBuffer* b = recording_thread()) b->async_end(ticks, id);
}

void mark_instant(std::string_view name) noexcept {
  if (ThreadBuffer* b = recording_thread()) b->instant(now_ticks(), b->text(name));
}

void mark_counter(std::string_view name, double value) noexcept {
  if (ThreadBuffer* b = recording_thread()) b->counter(now_ticks(), b->text(name), value);
}

void name_thread(std::string_view name) noexcept {
  if (ThreadBuffer* b = recording_thread()) b->thread_name(b->text(name));
}

}  // namespace firelane::record
