// The payload of a notes chunk: what is known about the recording itself. Each item is a
// tag, a length and its bytes (layout.h, Note), so that readers skip tags they do not know.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/varint.h"
#include "format/layout.h"

namespace firelane::format {

enum class PairRole : uint8_t { kStart = 0, kHeartbeat = 1, kStop = 2 };

// A segment of a caching allocator; its blocks follow each other from its address on.
struct SegmentFields {
  uint8_t device_type = 0;
  int8_t device = -1;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t stream = 0;  // as in MemoryPlace
  uint64_t pool = 0;
  bool is_expandable = false;
  bool is_large = false;
};
struct SegmentBlock {
  uint64_t bytes = 0;
  BlockState state = BlockState::kFree;
};

// Appends items to `payload`.
class NotesWriter {
 public:
  explicit NotesWriter(std::string& payload) : payload_(payload) {}

  void process(uint32_t pid, TickSource source, double ticks_per_second, std::string_view host,
               std::string_view command);
  void clock_pair(PairRole role, const ClockPair& pair);
  void option(std::string_view key, std::string_view value) { two_texts(Note::kOption, key, value); }
  void metadata(std::string_view key, std::string_view json) { two_texts(Note::kMetadata, key, json); }
  // `device_ns`: what the device took for it; below 0 unknown.
  void step(int64_t number, StepPhase phase, uint64_t start_ticks, uint64_t duration_ticks, int64_t device_ns = -1);
  // For the step that was written last.
  void step_thread(int64_t ran_ns, int64_t waited_ns);
  void cost(std::string_view kind, double ns_per_event);
  void loss(std::string_view reason, uint64_t count);
  void stopped(std::string_view reason);
  void pause(bool resumed, uint64_t ticks);
  void level(RecordLevel level, uint64_t ticks);
  void thread(uint32_t index, uint32_t thread_id, std::string_view name);
  // For ops whose name is the text with that id.
  void overload(uint32_t text_id, std::string_view overload);
  // The segments of a device at one moment have the same ticks; events of the device before that do not count for them.
  void segment(uint64_t ticks, const SegmentFields& segment, std::span<const SegmentBlock> blocks);
  void device_window(bool closed, int64_t device_ns);
  // The device's clock read between ticks - width / 2 and ticks + width / 2.
  void device_clock(PairRole role, uint64_t ticks, int64_t device_ns, uint64_t width_ticks);

 private:
  void item(Note tag, const std::string& body);
  void two_texts(Note tag, std::string_view a, std::string_view b);

  std::string& payload_;
};

// ---- items, parsed. Texts point into the payload --------------------------------------------

struct ProcessNote {
  uint32_t pid = 0;
  TickSource source{};
  double ticks_per_second = 0;
  std::string_view host;
  std::string_view command;
};
struct ClockNote {
  PairRole role{};
  ClockPair pair;
};
struct OptionNote {
  std::string_view key;
  std::string_view value;
};
struct MetadataNote {
  std::string_view key;
  std::string_view json;
};
struct StepNote {
  int64_t number = 0;
  StepPhase phase{};
  uint64_t start_ticks = 0;
  uint64_t duration_ticks = 0;
  int64_t device_ns = -1;  // below 0: unknown
};
struct StepThreadNote {
  int64_t ran_ns = 0;
  int64_t waited_ns = 0;
};
struct CostNote {
  std::string_view event;
  double ns = 0;
};
struct LossNote {
  std::string_view reason;
  uint64_t count = 0;
};
struct StoppedNote {
  std::string_view reason;
};
struct PauseNote {
  bool is_resumed = false;
  uint64_t ticks = 0;
};
struct LevelNote {
  RecordLevel level{};
  uint64_t ticks = 0;
};
struct ThreadNote {
  uint32_t index = 0;
  uint32_t thread_id = 0;
  std::string_view name;
};
struct DeviceClockNote {
  PairRole role{};
  uint64_t ticks = 0;
  int64_t device_ns = 0;
  uint64_t width_ticks = 0;
};
struct OverloadNote {
  uint64_t text_id = 0;
  std::string_view overload;
};
struct SegmentNote {
  uint64_t ticks = 0;
  SegmentFields segment;
  std::string_view blocks;  // SegmentBlocks
};
struct DeviceWindowNote {
  bool is_closed = false;
  int64_t device_ns = 0;
};

using NoteItem =
    std::variant<ProcessNote, ClockNote, OptionNote, MetadataNote, StepNote, CostNote, LossNote, StoppedNote, PauseNote,
                 ThreadNote, DeviceClockNote, OverloadNote, SegmentNote, DeviceWindowNote, LevelNote, StepThreadNote>;

// The blocks of a segment, from its note.
class SegmentBlocks {
 public:
  explicit SegmentBlocks(std::string_view text) : reader_(text) {}
  // False after the last, or where the bytes do not make sense.
  bool next(SegmentBlock& block) {
    if (reader_.empty()) return false;
    const uint64_t word = reader_.varint();
    block = {.bytes = word >> 2, .state = static_cast<BlockState>(word & 3)};
    return reader_.ok() && (word & 3) <= static_cast<uint64_t>(BlockState::kAllocated);
  }

 private:
  ByteReader reader_;
};

class NotesReader {
 public:
  explicit NotesReader(std::string_view payload) : reader_(payload) {}
  // False at the end or when damaged. Items of unknown tags and items that do not parse are
  // passed over; the latter count as damaged.
  bool next(NoteItem& item);
  uint64_t damaged_items() const { return damaged_; }

 private:
  ByteReader reader_;
  uint64_t damaged_ = 0;
};

}  // namespace firelane::format
