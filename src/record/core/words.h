// Records in a thread's block, in 8-byte words, between hook and drain. Never on disk:
// format/events.h is what is written.
//
//   word 0 of a timed record: | ticks, low 56 bits | kind u8 |
//   56 bits of ticks are 278 days at 3 GHz; the drain restores the rest from the session's start.
//
//   kBegin          stamp, | name slot u32 | scope << 32 |
//   kBeginSequence  stamp, name, sequence number
//   kEnd + group    stamp
//   kSlice          stamp of the start, name, duration in ticks
//   kAttribute      | kind u8 | attribute << 8 |, value: number or slot
//   kDefine         | kind u8 | slot << 8 (32 bits) | 1 << 40: an op |, byte length, the bytes padded to 8;
//                   of an op with an overload: name, 0, overload
//   kMemory         stamp, address, bytes, total allocated, total reserved, | type u8 | device u8 | action u8 |
//   kPlacedMemory   the same, stream, pool; | mapped u8 | is the fourth byte of the sixth word
//   kInstant        stamp, name
//   kCounter        stamp, name, the double's bits
//   kAsyncBegin     stamp, name, id
//   kAsyncEnd       stamp, id
//   kLost           stamp, events lost, lost ends by group (4 x u16)
//   kThreadName     | kind u8 |, slot
#pragma once

#include <cstdint>

#include "format/layout.h"
#include "record/core/text_slots.h"

namespace firelane::record {

enum class Word : uint8_t {
  kBegin = 1,
  kBeginSequence,
  kEnd,  // and three more, by ScopeGroup
  kEndPython,
  kEndModule,
  kEndCall,
  kSlice,
  kAttribute,
  kDefine,
  kMemory,
  kInstant,
  kCounter,
  kAsyncBegin,
  kAsyncEnd,
  kLost,
  kThreadName,
  kPlacedMemory,
};

constexpr uint64_t stamp(uint64_t ticks, Word kind) noexcept { return ticks << 8 | static_cast<uint64_t>(kind); }
constexpr Word kind_of(uint64_t word) noexcept { return static_cast<Word>(word & 0xFF); }
constexpr uint64_t name_word(TextSlot name, format::Scope scope) noexcept {
  return static_cast<uint64_t>(name) | static_cast<uint64_t>(scope) << 32;
}
constexpr uint64_t kDefinesOp = uint64_t{1} << 40;

// The full tick count of a stamp taken within +-139 days of `reference`.
constexpr uint64_t ticks_of(uint64_t word, uint64_t reference) noexcept {
  const int64_t since = static_cast<int64_t>((word & ~uint64_t{0xFF}) - (reference << 8)) >> 8;
  return reference + static_cast<uint64_t>(since);
}

}  // namespace firelane::record
