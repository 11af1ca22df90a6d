// Interning on the hot path: one thread's small table from keys to slots.
//
// A slot is a number below kSlotCount. The thread's own stream carries "slot 17 now means
// these bytes" (a definition) before the first record that uses slot 17; the drain turns
// slots into file-wide string ids. When the table is full a slot is simply redefined, so
// memory is bounded and nothing is ever looked up outside the thread.
//
// AN ID IS GOOD UNTIL THE NEXT LOOKUP ON THE SAME THREAD: a later lookup may give its slot
// to another text. Push the record that uses it first:
//   b->begin(now_ticks(), b->stable_name(fn.name()), Scope::kFunction);
//   b->attribute(Attribute::kInputs, b->inputs(blob));   // a second lookup: after begin
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace firelane::record {

enum class TextSlot : uint32_t {};
inline constexpr TextSlot kNoSlot{UINT32_MAX};  // not known, or its definition was dropped

class SlotTable {
 public:
  static constexpr uint32_t kSlotCount = 2048;

  // The slot of `key`, or kNoSlot. About 1 ns.
  TextSlot find(uint64_t key) const noexcept {
    const uint32_t set = set_of(key);
    for (uint32_t way = 0; way < kWays; ++way) {
      if (keys_[set + way] == key) return TextSlot{set + way};
    }
    return kNoSlot;
  }
  // The slot for `key`; the key that had it is forgotten. Call remember() once the definition is
  // in the stream.
  TextSlot choose(uint64_t key) noexcept {
    const uint32_t set = set_of(key);
    for (uint32_t way = 0; way < kWays; ++way) {
      if (keys_[set + way] == 0) return TextSlot{set + way};
    }
    const uint32_t slot = set + (next_victim_++ & (kWays - 1));
    keys_[slot] = 0;
    return TextSlot{slot};
  }
  void remember(TextSlot slot, uint64_t key) noexcept { keys_[static_cast<uint32_t>(slot)] = key; }
  void clear() noexcept { keys_.fill(0); }

 private:
  static constexpr uint32_t kWays = 4;
  static uint32_t set_of(uint64_t key) noexcept {
    return static_cast<uint32_t>((key * 0x9E3779B97F4A7C15u) >> 55) * kWays;
  }
  static_assert(kSlotCount == 512 * kWays);

  std::array<uint64_t, kSlotCount> keys_{};  // 0 = free
  uint32_t next_victim_ = 0;
};

}  // namespace firelane::record
