// The paths of ThreadBuffer that are not inline: full blocks, losses, definitions, points.
#include "record/core/thread_buffer.h"

#include <cstring>

#include "record/core/recorder.h"

namespace firelane::record {

void ThreadBuffer::set_limit() noexcept {
  const bool slow = fate_depth_ > 0 || untracked_depth_ > 0 || lost_events_ > 0 || last_dropped_;
  limit_ = slow ? cursor_ : block_->words + Block::kWords;
}

bool ThreadBuffer::next_block() noexcept {
  auto* block = static_cast<Block*>(Recorder::get().take_block());
  if (block == nullptr) return false;
  block->next.store(nullptr, std::memory_order_relaxed);
  block->committed.store(0, std::memory_order_relaxed);
  block_->next.store(block, std::memory_order_release);  // after the last commit to block_
  block_ = block;
  cursor_ = block->words;
  set_limit();
  return true;
}

uint64_t* ThreadBuffer::slow_room(size_t words) noexcept {
  constexpr size_t kLostWords = 3;
  const size_t needed = words + (lost_events_ > 0 ? kLostWords : 0);
  if (cursor_ + needed > block_->words + Block::kWords && !next_block()) return nullptr;
  if (lost_events_ > 0) {
    cursor_[0] = stamp(now_ticks(), Word::kLost);
    cursor_[1] = lost_events_;
    cursor_[2] = 0;
    for (size_t g = 0; g < 4; ++g) cursor_[2] |= uint64_t{lost_ends_[g]} << (16 * g);
    lost_events_ = 0;
    for (uint16_t& ends : lost_ends_) ends = 0;
    commit(kLostWords);
  }
  return cursor_;
}

void ThreadBuffer::count_lost() noexcept {
  ++lost_events_;
  total_lost_.store(total_lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void ThreadBuffer::push_fate(bool recorded) noexcept {
  ++open_;
  if (untracked_depth_ > 0 || fate_depth_ == kMaxTrackedDepth) {
    ++untracked_depth_;
    return;
  }
  const uint64_t bit = uint64_t{1} << (fate_depth_ & 63);
  uint64_t& word = fate_[fate_depth_ >> 6];
  word = recorded ? word | bit : word & ~bit;
  ++fate_depth_;
}

void ThreadBuffer::begin_slow(uint64_t ticks, TextSlot name, format::Scope scope, int64_t sequence) noexcept {
  const size_t words = sequence < 0 ? 2 : 3;
  const bool too_deep = untracked_depth_ > 0 || fate_depth_ == kMaxTrackedDepth;
  uint64_t* w = name == kNoSlot || too_deep ? nullptr : slow_room(words);
  last_dropped_ = w == nullptr;
  if (w != nullptr) {
    w[0] = stamp(ticks, sequence < 0 ? Word::kBegin : Word::kBeginSequence);
    w[1] = name_word(name, scope);
    if (sequence >= 0) w[2] = static_cast<uint64_t>(sequence);
    commit(words);
  } else {
    count_lost();
  }
  // The fate of a slice matters only inside a lost one: its end must share it.
  if (w == nullptr || fate_depth_ > 0) {
    push_fate(w != nullptr);
  } else {
    ++open_;
  }
  set_limit();
}

void ThreadBuffer::end_slow(uint64_t ticks, format::ScopeGroup group) noexcept {
  if (open_ == 0) return;
  --open_;
  last_dropped_ = false;
  bool recorded = true;
  if (untracked_depth_ > 0) {
    --untracked_depth_;
    recorded = false;
  } else if (fate_depth_ > 0) {
    --fate_depth_;
    recorded = (fate_[fate_depth_ >> 6] >> (fate_depth_ & 63) & 1) != 0;
  }
  if (recorded) {
    if (uint64_t* w = slow_room(1)) {
      w[0] = stamp(ticks, static_cast<Word>(static_cast<uint8_t>(Word::kEnd) + static_cast<uint8_t>(group)));
      commit(1);
    } else {
      uint16_t& ends = lost_ends_[static_cast<size_t>(group)];
      if (ends < UINT16_MAX) ++ends;
      count_lost();
    }
  }
  set_limit();
}

uint64_t* ThreadBuffer::point_room(size_t words) noexcept {
  if (uint64_t* w = room(words)) return w;
  uint64_t* w = slow_room(words);
  if (w == nullptr) count_lost();
  set_limit();
  return w;
}

void ThreadBuffer::slice(uint64_t start_ticks, uint64_t end_ticks, TextSlot name, format::Scope scope) noexcept {
  uint64_t* w = name == kNoSlot ? nullptr : point_room(3);
  if (name == kNoSlot) count_lost();
  last_dropped_ = w == nullptr;
  if (w != nullptr) {
    w[0] = stamp(start_ticks, Word::kSlice);
    w[1] = name_word(name, scope);
    w[2] = end_ticks > start_ticks ? end_ticks - start_ticks : 0;
    commit(3);
  }
  set_limit();
}

void ThreadBuffer::attribute_slow(format::Attribute key, int64_t number) noexcept {
  if (last_dropped_) return;
  if (uint64_t* w = point_room(2)) put_attribute(w, key, number);
}

void ThreadBuffer::async_begin(uint64_t ticks, TextSlot name, format::Scope scope, uint64_t id) noexcept {
  uint64_t* w = name == kNoSlot ? nullptr : point_room(3);
  if (name == kNoSlot) count_lost();
  last_dropped_ = w == nullptr;  // attributes may follow, as after begin()
  if (w != nullptr) {
    w[0] = stamp(ticks, Word::kAsyncBegin);
    w[1] = name_word(name, scope);
    w[2] = id;
    commit(3);
  }
  set_limit();
}

void ThreadBuffer::async_end(uint64_t ticks, uint64_t id) noexcept {
  if (uint64_t* w = point_room(2)) {
    w[0] = stamp(ticks, Word::kAsyncEnd);
    w[1] = id;
    commit(2);
  }
}

void ThreadBuffer::memory(uint64_t ticks, const MemoryRecord& event) noexcept {
  const size_t words = event.place ? 8 : 6;
  if (uint64_t* w = point_room(words)) {
    w[0] = stamp(ticks, event.place ? Word::kPlacedMemory : Word::kMemory);
    w[1] = event.address;
    w[2] = static_cast<uint64_t>(event.bytes);
    w[3] = static_cast<uint64_t>(event.total_allocated_bytes);
    w[4] = static_cast<uint64_t>(event.total_reserved_bytes);
    w[5] = uint64_t{event.device_type} | uint64_t{static_cast<uint8_t>(event.device)} << 8 |
           static_cast<uint64_t>(event.action) << 16;
    if (event.place) {
      w[5] |= uint64_t{event.place->is_mapped} << 24;
      w[6] = event.place->stream;
      w[7] = event.place->pool;
    }
    commit(words);
  }
}

void ThreadBuffer::instant(uint64_t ticks, TextSlot name) noexcept {
  if (name == kNoSlot) return count_lost();
  if (uint64_t* w = point_room(2)) {
    w[0] = stamp(ticks, Word::kInstant);
    w[1] = name_word(name, format::Scope::kFunction);
    commit(2);
  }
}

void ThreadBuffer::counter(uint64_t ticks, TextSlot name, double value) noexcept {
  if (name == kNoSlot) return count_lost();
  if (uint64_t* w = point_room(3)) {
    w[0] = stamp(ticks, Word::kCounter);
    w[1] = name_word(name, format::Scope::kFunction);
    w[2] = std::bit_cast<uint64_t>(value);
    commit(3);
  }
}

void ThreadBuffer::thread_name(TextSlot name) noexcept {
  if (name == kNoSlot) return count_lost();
  if (uint64_t* w = point_room(2)) {
    w[0] = static_cast<uint64_t>(Word::kThreadName);
    w[1] = static_cast<uint32_t>(name);
    commit(2);
  }
}

TextSlot ThreadBuffer::define_op(uint64_t key, std::string_view name, std::string_view overload) noexcept {
  char both[512];
  if (overload.empty() || name.size() + 1 + overload.size() > sizeof both) return define_key(key, name);
  std::memcpy(both, name.data(), name.size());
  both[name.size()] = '\0';
  std::memcpy(both + name.size() + 1, overload.data(), overload.size());
  return define(key | kCallerKey, {both, name.size() + 1 + overload.size()}, kDefinesOp);
}

TextSlot ThreadBuffer::define(uint64_t key, std::string_view bytes, uint64_t flags) noexcept {
  bytes = bytes.substr(0, kMaxTextBytes);
  const size_t text_words = (bytes.size() + 7) / 8;
  const TextSlot slot = slots_.choose(key);
  uint64_t* w = room(2 + text_words);
  if (w == nullptr) w = slow_room(2 + text_words);
  if (w == nullptr) return kNoSlot;  // the record that wanted it is counted when it is dropped
  w[0] = static_cast<uint64_t>(Word::kDefine) | static_cast<uint64_t>(slot) << 8 | flags;
  w[1] = bytes.size();
  if (text_words > 0) {
    w[1 + text_words] = 0;
    std::memcpy(w + 2, bytes.data(), bytes.size());
  }
  commit(2 + text_words);
  slots_.remember(slot, key);
  set_limit();
  return slot;
}

}  // namespace firelane::record
