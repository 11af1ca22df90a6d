// The payload of an events chunk: definitions of texts, then one section per thread.
//
//   payload     := definitions section*
//   definitions := first id varint, count varint, count x (length varint, bytes)
//   section     := thread index varint, system thread id varint, first ticks zigzag (since the
//                  session's start), record count varint, 3 x column length varint, tags, times,
//                  texts, numbers
//
// A section is four columns, which compress better than records in a row:
//   tags     one byte a record: variant << 4 | Record
//   times    zigzag ticks since the record before (the first: since "first ticks")
//   texts    string ids, varint; 0 is ""
//   numbers  varints, as each record needs them
//
//   record          variant          times  texts  numbers
//   kBegin          scope code       1      name   [scope u8 when the code is 15]
//   kBeginSequence  scope code       1      name   [scope u8], zigzag: sequence minus the last one
//   kEnd..kEndCall  0                1      -      -
//   kSlice          scope code       1      name   [scope u8], duration
//   kAttribute      Attribute        -      text?  zigzag number, unless it is a text
//   kMemory         MemoryAction     1      -      zigzag address minus the last, zigzag bytes, zigzag
//                                                  total allocated minus (the last + bytes), zigzag total
//                                                  reserved minus the last, device type << 8 | device + 1
//   kInstant        0                1      name   -
//   kCounter        0                1      name   the double's bits, byte-swapped
//   kAsyncBegin     scope code       1      name   [scope u8], id
//   kAsyncEnd       0                1      -      id
//   kLost           0                1      -      events, 4 x ends by group
//   kThreadName     0                -      name   -
//   kExtended       0                -      -      kind, length, bytes: Extended (layout.h)
// A memory record has the place that the last kMemoryPlace of its section gave.
// "The last" starts at 0 in every section, so each section stands for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/varint.h"
#include "format/layout.h"

namespace firelane::format {

// Scopes with a code of their own; 15 = the scope follows as a number.
uint8_t scope_code(Scope scope);

// Where memory of a caching allocator belongs.
struct MemoryPlace {
  uint64_t stream = 0;     // its handle; 0 is the default stream
  uint64_t pool = 0;       // capture id << 32 | handle of a private pool; 0 is the common one
  bool is_mapped = false;  // of a segment: expandable, mapped piece by piece
  bool operator==(const MemoryPlace&) const = default;
};

struct MemoryFields {
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t total_allocated_bytes = -1;
  int64_t total_reserved_bytes = -1;
  uint8_t device_type = 0;
  int8_t device = -1;
  std::optional<MemoryPlace> place;
};

// One record of a stream, read or to be written. Which fields count: the table above.
struct EventRecord {
  Record kind = Record::kExtended;
  Scope scope = Scope::kFunction;
  Attribute attribute{};
  MemoryAction action{};
  uint32_t text = 0;
  uint64_t ticks = 0;
  int64_t number = 0;  // sequence, duration, attribute, async id, events lost, kind of an extended record
  double value = 0;
  uint16_t lost_ends[4] = {};
  MemoryFields memory;
};

// Builds one section. Reused: clear() keeps the memory.
class SectionWriter {
 public:
  void begin(uint32_t thread_index, uint32_t thread_id, uint64_t session_start_ticks, uint64_t first_ticks);
  void add(const EventRecord& record);
  size_t byte_count() const { return tags_.size() + times_.size() + texts_.size() + numbers_.size(); }
  void append_to(std::string& payload) const;

 private:
  void add_time(uint64_t ticks) {
    append_zigzag(times_, static_cast<int64_t>(ticks - last_ticks_));
    last_ticks_ = ticks;
  }
  void add_memory(const EventRecord& record);
  void add_place(const MemoryPlace& place);

  uint32_t thread_index_ = 0;
  uint32_t thread_id_ = 0;
  int64_t first_ticks_ = 0;
  uint64_t last_ticks_ = 0;
  int64_t last_sequence_ = 0;
  MemoryFields last_memory_;
  std::string tags_, times_, texts_, numbers_;
};

void append_definitions(std::string& payload, uint32_t first_id, const std::vector<std::string_view>& texts);

// Reads a section record by record.
class SectionReader {
 public:
  uint32_t thread_index() const { return thread_index_; }
  uint32_t thread_id() const { return thread_id_; }
  // False at the end, or (damaged() then) when the columns do not fit together.
  bool next(EventRecord& record);
  bool damaged() const { return damaged_; }

 private:
  friend class EventsReader;
  Scope read_scope(uint8_t code);
  void read_memory(EventRecord& record);
  void read_extended(EventRecord& record);

  uint32_t thread_index_ = 0;
  uint32_t thread_id_ = 0;
  uint64_t left_ = 0;
  uint64_t last_ticks_ = 0;
  int64_t last_sequence_ = 0;
  MemoryFields last_memory_;
  ByteReader tags_, times_, texts_, numbers_;
  bool damaged_ = false;
};

// Reads a payload: definitions first, then section by section.
class EventsReader {
 public:
  EventsReader(std::string_view payload, uint64_t session_start_ticks)
      : reader_(payload), start_ticks_(session_start_ticks) {}

  // Ids are first_id, first_id + 1, ... False when damaged.
  bool read_definitions(uint32_t& first_id, std::vector<std::string_view>& texts);
  // False at the end or when damaged.
  bool next_section(SectionReader& section);
  bool damaged() const { return !reader_.ok(); }
  // What lies behind the definitions: tables in a device chunk (format/device.h).
  ByteReader rest() const { return reader_; }

 private:
  ByteReader reader_;
  uint64_t start_ticks_;
};

}  // namespace firelane::format
