// Every kind of record comes back as it was written, whatever its numbers.
#include "format/events.h"

#include <gtest/gtest.h>

#include <limits>

namespace firelane::format {
namespace {

std::vector<EventRecord> one_of_each() {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  return {
      {.kind = Record::kBegin, .scope = Scope::kPythonFunction, .text = 1, .ticks = 500},
      {.kind = Record::kBegin, .scope = Scope::kOverhead, .text = 2, .ticks = 400},
      {.kind = Record::kBeginSequence, .scope = Scope::kUser, .text = 0, .ticks = 501, .number = kMax},
      {.kind = Record::kBeginSequence, .scope = Scope::kFunction, .text = 9, .ticks = 502, .number = kMin},
      {.kind = Record::kEndModule, .ticks = 503},
      {.kind = Record::kSlice, .scope = Scope::kDriver, .text = 3, .ticks = 100, .number = 77},
      {.kind = Record::kAttribute, .attribute = Attribute::kInputs, .text = 70000},
      {.kind = Record::kAttribute, .attribute = Attribute::kFlops, .number = -5},
      {.kind = Record::kMemory,
       .action = MemoryAction::kFree,
       .ticks = 505,
       .memory = {.address = UINT64_MAX,
                  .bytes = kMin,
                  .total_allocated_bytes = kMax,
                  .total_reserved_bytes = -1,
                  .device_type = 1,
                  .device = 7}},
      {.kind = Record::kMemory,
       .action = MemoryAction::kAlloc,
       .ticks = 505,
       .memory = {.address = 0,
                  .bytes = 64,
                  .total_allocated_bytes = 0,
                  .total_reserved_bytes = kMax,
                  .device_type = 0,
                  .device = -1}},
      {.kind = Record::kInstant, .text = 4, .ticks = UINT64_MAX},
      {.kind = Record::kCounter, .text = 5, .ticks = 0, .value = 312.5},
      {.kind = Record::kAsyncBegin, .scope = Scope::kUser, .text = 6, .ticks = 600, .number = -1},
      {.kind = Record::kAsyncEnd, .ticks = 601, .number = -1},
      {.kind = Record::kLost, .ticks = 602, .number = 12, .lost_ends = {1, 2, 3, 65535}},
      {.kind = Record::kThreadName, .text = 8},
  };
}

void expect_same(const EventRecord& a, const EventRecord& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.scope, b.scope);
  EXPECT_EQ(a.attribute, b.attribute);
  EXPECT_EQ(a.action, b.action);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.ticks, b.ticks);
  EXPECT_EQ(a.number, b.number);
  EXPECT_EQ(a.value, b.value);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a.lost_ends[i], b.lost_ends[i]);
  EXPECT_EQ(a.memory.address, b.memory.address);
  EXPECT_EQ(a.memory.bytes, b.memory.bytes);
  EXPECT_EQ(a.memory.total_allocated_bytes, b.memory.total_allocated_bytes);
  EXPECT_EQ(a.memory.total_reserved_bytes, b.memory.total_reserved_bytes);
  EXPECT_EQ(a.memory.device_type, b.memory.device_type);
  EXPECT_EQ(a.memory.device, b.memory.device);
  EXPECT_EQ(a.memory.place, b.memory.place);
}

std::string payload_of(const std::vector<EventRecord>& records) {
  SectionWriter section;
  section.begin(3, 1234, 450, 500);
  for (const EventRecord& r : records) section.add(r);
  std::string payload;
  append_definitions(payload, 1, {"one", "two"});
  section.append_to(payload);
  return payload;
}

TEST(Events, every_record_comes_back) {
  const std::vector<EventRecord> records = one_of_each();
  const std::string payload = payload_of(records);
  EventsReader reader(payload, 450);
  uint32_t first = 0;
  std::vector<std::string_view> texts;
  ASSERT_TRUE(reader.read_definitions(first, texts));
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(texts, (std::vector<std::string_view>{"one", "two"}));
  SectionReader section;
  ASSERT_TRUE(reader.next_section(section));
  EXPECT_EQ(section.thread_index(), 3u);
  EXPECT_EQ(section.thread_id(), 1234u);
  for (const EventRecord& expected : records) {
    EventRecord read;
    ASSERT_TRUE(section.next(read));
    expect_same(read, expected);
  }
  EventRecord none;
  EXPECT_FALSE(section.next(none));
  EXPECT_FALSE(section.damaged());
  EXPECT_FALSE(reader.next_section(section));
  EXPECT_FALSE(reader.damaged());
}

TEST(Events, where_memory_belongs_is_written_only_where_it_changes) {
  const auto memory = [](std::optional<MemoryPlace> place, uint8_t device_type = 1) {
    return EventRecord{.kind = Record::kMemory, .ticks = 500, .memory = {.device_type = device_type, .place = place}};
  };
  const MemoryPlace stream{.stream = 77, .pool = 5};
  const MemoryPlace mapped{.stream = 77, .pool = 5, .is_mapped = true};
  const std::string payload = payload_of(
      {memory(std::nullopt), memory(stream), memory(stream), memory(std::nullopt, 0), memory(stream), memory(mapped)});
  EventsReader reader(payload, 450);
  uint32_t first = 0;
  std::vector<std::string_view> texts;
  ASSERT_TRUE(reader.read_definitions(first, texts));
  SectionReader section;
  ASSERT_TRUE(reader.next_section(section));
  std::string read;
  for (EventRecord r; section.next(r);) {
    if (r.kind == Record::kExtended) {
      read += "place " + std::to_string(r.number) + "; ";
    } else {
      read += !r.memory.place ? "nowhere; "
                              : std::to_string(r.memory.place->stream) + (r.memory.place->is_mapped ? "m; " : "; ");
    }
  }
  EXPECT_EQ(read, "nowhere; place 1; 77; 77; nowhere; 77; place 1; 77m; ");
  EXPECT_FALSE(section.damaged());
}

TEST(Events, a_payload_cut_anywhere_is_read_without_going_past_its_end) {
  const std::string payload = payload_of(one_of_each());
  for (size_t cut = 0; cut < payload.size(); ++cut) {
    const std::string piece = payload.substr(0, cut);  // own memory: the sanitizer sees a read past it
    EventsReader reader(piece, 450);
    uint32_t first = 0;
    std::vector<std::string_view> texts;
    if (!reader.read_definitions(first, texts)) continue;
    SectionReader section;
    EventRecord record;
    size_t seen = 0;
    while (reader.next_section(section)) {
      while (section.next(record)) ++seen;
    }
    EXPECT_LT(seen, one_of_each().size() + 1) << cut;
  }
}

TEST(Events, columns_that_are_too_short_are_damage_not_records) {
  std::string payload;
  append_definitions(payload, 1, {});
  // Thread 0: two begins, but times, texts and numbers are empty.
  payload.append(std::string_view("\0\0\0\x02\0\0\0", 7));
  payload.append("\x01\x01");
  EventsReader reader(payload, 0);
  uint32_t first = 0;
  std::vector<std::string_view> texts;
  ASSERT_TRUE(reader.read_definitions(first, texts));
  SectionReader section;
  ASSERT_TRUE(reader.next_section(section));
  EventRecord record;
  EXPECT_FALSE(section.next(record));
  EXPECT_TRUE(section.damaged());
}

}  // namespace
}  // namespace firelane::format
