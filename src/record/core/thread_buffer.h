// The hot path: what a hook calls inside the user's operator.
//
//   if (ThreadBuffer* b = recording_thread_for_begin()) {
//     b->begin(now_ticks(), b->stable_name(name), Scope::kFunction, sequence);
//   }
//   ...
//   if (ThreadBuffer* b = recording_thread_for_end()) b->end(now_ticks(), ScopeGroup::kOp);
//
// Everything that is neither begin nor end (memory, instants, counters) asks recording_thread().
//
// Nothing here throws, prints, waits or allocates. A thread takes its buffer (this object,
// and one block of records) from a fixed pool on its first event in a session: one
// system call for the thread id, no malloc. Records are 8 to 48 bytes in a 32 KiB block;
// a full block is swapped for a free one. When the pool is empty the event is dropped and
// counted, and the stream says so where it happened; an end is dropped with its begin and
// the other way round, so nesting survives any loss.
//
// One thread writes (its own), the drain reads: block->committed publishes, release/acquire.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/hash.h"
#include "format/events.h"
#include "format/layout.h"
#include "record/core/block_pool.h"
#include "record/core/input_blob.h"
#include "record/core/text_slots.h"
#include "record/core/words.h"

namespace firelane::record {

class ThreadBuffer;

namespace detail {
// Number of the session that records now; 0 while none does or it is paused.
extern std::atomic<uint64_t> g_recording;
// Never null (before attach: an empty buffer of no session). Initial-exec: one instruction, also inside a Python
// extension.
extern constinit thread_local ThreadBuffer* t_buffer __attribute__((tls_model("initial-exec")));
ThreadBuffer* attach_thread() noexcept;
ThreadBuffer* attach_for_begin() noexcept;
ThreadBuffer* attached_for_end() noexcept;
}  // namespace detail

// True while events are wanted. For hooks that must do work before they have an event.
inline bool is_recording() noexcept { return detail::g_recording.load(std::memory_order_relaxed) != 0; }

struct MemoryRecord {
  uint64_t address = 0;
  int64_t bytes = 0;                   // negative = freed
  int64_t total_allocated_bytes = -1;  // after this event; -1 unknown
  int64_t total_reserved_bytes = -1;
  uint8_t device_type = 0;  // c10::DeviceType
  int8_t device = -1;
  format::MemoryAction action = format::MemoryAction::kAlloc;
  std::optional<format::MemoryPlace> place;  // of a caching allocator's
};

class ThreadBuffer {
 public:
  // ---- Slices -------------------------------------------------------------------------
  // Opens a slice. `sequence` < 0: none. A kNoSlot name drops the slice (and its end).
  void begin(uint64_t ticks, TextSlot name, format::Scope scope) noexcept {
    uint64_t* w = room(2);
    if (w == nullptr || name == kNoSlot) [[unlikely]]
      return begin_slow(ticks, name, scope, -1);
    w[0] = stamp(ticks, Word::kBegin);
    w[1] = name_word(name, scope);
    ++open_;
    commit(2);
  }
  void begin(uint64_t ticks, TextSlot name, format::Scope scope, int64_t sequence) noexcept {
    uint64_t* w = room(3);
    if (w == nullptr || name == kNoSlot) [[unlikely]]
      return begin_slow(ticks, name, scope, sequence);
    w[0] = stamp(ticks, Word::kBeginSequence);
    w[1] = name_word(name, scope);
    w[2] = static_cast<uint64_t>(sequence);
    ++open_;
    commit(3);
  }
  // Closes the innermost open slice of the group. An end without a begin is ignored.
  void end(uint64_t ticks, format::ScopeGroup group) noexcept {
    uint64_t* w = room(1);
    if (w == nullptr || open_ == 0) [[unlikely]]
      return end_slow(ticks, group);
    w[0] = stamp(ticks, static_cast<Word>(static_cast<uint8_t>(Word::kEnd) + static_cast<uint8_t>(group)));
    --open_;
    commit(1);
  }
  // A slice whose start and end are both known. May lie before earlier records.
  void slice(uint64_t start_ticks, uint64_t end_ticks, TextSlot name, format::Scope scope) noexcept;
  // More about the slice begun last (begin or slice) on this thread: call right after it.
  // Dropped silently when that slice was dropped.
  void attribute(format::Attribute key, TextSlot text) noexcept {
    if (text != kNoSlot) attribute(key, static_cast<int64_t>(static_cast<uint32_t>(text)));
  }
  void attribute(format::Attribute key, int64_t number) noexcept {
    uint64_t* w = room(2);
    if (w == nullptr) [[unlikely]]
      return attribute_slow(key, number);  // also after a slice that was dropped
    put_attribute(w, key, number);
  }
  // A range whose end may come on another thread; `id` is the caller's, unique while open.
  void async_begin(uint64_t ticks, TextSlot name, format::Scope scope, uint64_t id) noexcept;
  void async_end(uint64_t ticks, uint64_t id) noexcept;

  // ---- Points -------------------------------------------------------------------------
  void memory(uint64_t ticks, const MemoryRecord& event) noexcept;
  void instant(uint64_t ticks, TextSlot name) noexcept;
  void counter(uint64_t ticks, TextSlot name, double value) noexcept;
  // Replaces the name that the system gives the thread.
  void thread_name(TextSlot name) noexcept;

  // ---- Texts: valid until the next lookup on this thread (text_slots.h) ----------------
  // A text that never changes or goes away while recording (names of schema ops, literals):
  // found by its address, about 1 ns after the first time.
  TextSlot stable_name(const char* text) noexcept {
    const TextSlot slot = slots_.find(reinterpret_cast<uintptr_t>(text));
    return slot != kNoSlot ? slot : define(reinterpret_cast<uintptr_t>(text), text);
  }
  // Any text, found by its content (a 64-bit hash): about 5 ns for 30 bytes.
  TextSlot text(std::string_view bytes) noexcept {
    const uint64_t key = hash_text(bytes) | kContentKey;
    const TextSlot slot = slots_.find(key);
    return slot != kNoSlot ? slot : define(key, bytes);
  }
  TextSlot inputs(const InputBlob& blob) noexcept { return text(blob.bytes()); }
  // The same by a hash of the caller's, who builds the content only when it is not known: find, and on kNoSlot define.
  TextSlot find_content(uint64_t hash) const noexcept { return slots_.find(hash | kContentKey); }
  TextSlot define_content(uint64_t hash, std::string_view bytes) noexcept { return define(hash | kContentKey, bytes); }
  // For keys of the caller's own making (a code object's address, a module's id): find, and
  // on kNoSlot build the text and define it. REQUIRES: key != 0, below 1 << 62, and not the
  // address of a text given to stable_name().
  TextSlot find(uint64_t key) const noexcept { return slots_.find(key | kCallerKey); }
  TextSlot define_key(uint64_t key, std::string_view bytes) noexcept { return define(key | kCallerKey, bytes); }
  // The same for the name of an op with its overload. Names with different overloads need different keys.
  TextSlot define_op(uint64_t key, std::string_view name, std::string_view overload) noexcept;

  uint32_t system_thread_id() const noexcept { return thread_id_; }

 private:
  friend class Recorder;  // attaches, drains and frees buffers
  friend ThreadBuffer* recording_thread() noexcept;
  friend ThreadBuffer* recording_thread_for_begin() noexcept;
  friend ThreadBuffer* recording_thread_for_end() noexcept;
  friend ThreadBuffer* detail::attach_thread() noexcept;
  friend ThreadBuffer* detail::attach_for_begin() noexcept;
  friend ThreadBuffer* detail::attached_for_end() noexcept;

  static constexpr uint64_t kContentKey = uint64_t{1} << 63;
  static constexpr uint64_t kCallerKey = uint64_t{1} << 62;
  static constexpr size_t kMaxTextBytes = 16 << 10;   // longer texts are cut
  static constexpr uint32_t kMaxTrackedDepth = 2048;  // of slices opened after one was lost

  uint64_t* room(size_t words) const noexcept { return cursor_ + words <= limit_ ? cursor_ : nullptr; }
  void commit(size_t words) noexcept {
    cursor_ += words;
    block_->committed.store(static_cast<uint32_t>(cursor_ - block_->words), std::memory_order_release);
  }

  // Room after swapping a full block and noting earlier losses; null when the pool is empty.
  uint64_t* slow_room(size_t words) noexcept;
  bool next_block() noexcept;
  // While a loss is outstanding every call takes the slow path: limit_ = cursor_.
  void set_limit() noexcept;
  void put_attribute(uint64_t* w, format::Attribute key, int64_t number) noexcept {
    w[0] = static_cast<uint64_t>(Word::kAttribute) | static_cast<uint64_t>(key) << 8;
    w[1] = static_cast<uint64_t>(number);
    commit(2);
  }
  void attribute_slow(format::Attribute key, int64_t number) noexcept;
  void begin_slow(uint64_t ticks, TextSlot name, format::Scope scope, int64_t sequence) noexcept;
  void end_slow(uint64_t ticks, format::ScopeGroup group) noexcept;
  void push_fate(bool recorded) noexcept;
  void count_lost() noexcept;
  // A point or complete record: room on either path, or null and counted.
  uint64_t* point_room(size_t words) noexcept;
  TextSlot define(uint64_t key, std::string_view bytes, uint64_t flags = 0) noexcept;

  // The writer's state, in one or two cache lines.
  uint64_t* cursor_ = nullptr;
  uint64_t* limit_ = nullptr;
  Block* block_ = nullptr;
  uint64_t session_ = UINT64_MAX;  // the session this thread is attached to
  uint32_t open_ = 0;
  bool last_dropped_ = false;  // the slice begun last is not in the stream, nor are its attributes

  // Losses that are not in the stream yet, and the fate of slices opened since a lost one.
  uint64_t lost_events_ = 0;
  uint16_t lost_ends_[4] = {};
  uint32_t fate_depth_ = 0;
  uint32_t untracked_depth_ = 0;
  uint64_t fate_[kMaxTrackedDepth / 64] = {};

  // Who this is, and the drain's side.
  uint32_t thread_id_ = 0;
  uint32_t index_ = 0;            // in the session
  ThreadBuffer* next_ = nullptr;  // in the session's list
  Block* read_block_ = nullptr;
  uint32_t read_words_ = 0;
  bool attached_ = false;                 // guarded by the recorder's mutex
  std::atomic<bool> exited_ = false;      // the thread is gone; the drain frees this
  std::atomic<uint64_t> total_lost_ = 0;  // since attach; the drain reads it

  SlotTable slots_;
};
static_assert(sizeof(ThreadBuffer) <= kBlockBytes, "a buffer takes one block of the pool");

// The calling thread's buffer, or null when nothing is recorded now (also in a forked
// child). One thread-local load and one compare. Good until the thread returns to its caller.
inline ThreadBuffer* recording_thread() noexcept {
  ThreadBuffer* b = detail::t_buffer;
  if (b->session_ == detail::g_recording.load(std::memory_order_relaxed)) [[likely]]
    return b;
  return detail::attach_thread();
}
// The same, before begin(). While paused it returns null and remembers that this slice's
// end is to be skipped.
inline ThreadBuffer* recording_thread_for_begin() noexcept {
  ThreadBuffer* b = detail::t_buffer;
  if (b->session_ == detail::g_recording.load(std::memory_order_relaxed)) [[likely]]
    return b;
  return detail::attach_for_begin();
}
// The same, before end(). Not null while paused when the slice was begun before the pause.
inline ThreadBuffer* recording_thread_for_end() noexcept {
  ThreadBuffer* b = detail::t_buffer;
  if (b->session_ == detail::g_recording.load(std::memory_order_relaxed)) [[likely]]
    return b;
  return detail::attached_for_end();
}

}  // namespace firelane::record
