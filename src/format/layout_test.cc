// Golden bytes: what docs/format.md promises, byte by byte.
#include "format/layout.h"

#include <gtest/gtest.h>

#include "format/chunk.h"
#include "format/events.h"
#include "format/notes.h"
#include "format/testing.h"

namespace firelane::format {
namespace {

using test::StringSink;

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    char text[4];
    std::snprintf(text, sizeof text, "%02x ", static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += text;
  }
  if (!out.empty()) out.pop_back();
  return out;
}

TEST(Layout, file_header_is_sixteen_bytes) {
  StringSink sink;
  ChunkWriter writer(sink, 1);
  ASSERT_EQ(writer.write_header(0x1122334455667788), "");
  EXPECT_EQ(hex(sink.content), "4c 41 4e 45 01 00 00 00 88 77 66 55 44 33 22 11");
}

TEST(Layout, a_short_chunk_is_stored_as_it_is) {
  StringSink sink;
  ChunkWriter writer(sink, 1);
  ASSERT_EQ(writer.write_chunk(ChunkKind::kNotes, "abc"), "");
  EXPECT_EQ(hex(sink.content), "6c 63 68 6b 01 00 00 00 03 00 00 00 03 00 00 00 00 00 00 00 70 39 d6 2a 61 62 63");
  EXPECT_EQ(sink.content, encode_chunk(ChunkKind::kNotes, 0, 3, 0, "abc"));
}

TEST(Layout, a_clean_end_is_an_index_and_a_trailer) {
  StringSink sink;
  ChunkWriter writer(sink, 1);
  ASSERT_EQ(writer.write_header(0), "");
  ASSERT_EQ(writer.write_chunk(ChunkKind::kNotes, "abc"), "");
  ASSERT_EQ(writer.finish(/*event_count=*/5), "");
  // Events 5, one chunk: kind 1 at offset 16. The index chunk itself lies at 43.
  EXPECT_EQ(sink.content.substr(43 + kChunkHeaderBytes, 4), (std::string{5, 1, 1, 16}));
  EXPECT_EQ(hex(sink.content.substr(sink.content.size() - kTrailerBytes)),
            "2b 00 00 00 00 00 00 00 4c 41 4e 45 2e 45 4e 44");
}

TEST(Layout, a_section_of_one_op_is_ten_bytes_and_its_head) {
  SectionWriter section;
  section.begin(/*thread_index=*/2, /*thread_id=*/300, /*session_start_ticks=*/1000, /*first_ticks=*/1007);
  section.add({.kind = Record::kBeginSequence, .scope = Scope::kFunction, .text = 1, .ticks = 1007, .number = 3});
  section.add({.kind = Record::kEnd, .ticks = 1107});
  std::string payload;
  append_definitions(payload, 1, {"aten::mm"});
  section.append_to(payload);
  EXPECT_EQ(hex(payload),
            "01 01 08 61 74 65 6e 3a 3a 6d 6d "  // id 1: one text of 8 bytes
            "02 ac 02 0e 02 03 01 01 "           // thread 2, id 300, +7, 2 records; columns of 3, 1, 1 bytes
            "02 03 "                             // tags
            "00 c8 01 "                          // times +0, +100
            "01 "                                // texts
            "06");                               // numbers: sequence +3
}

TEST(Layout, notes_are_tag_length_body) {
  std::string payload;
  NotesWriter notes(payload);
  notes.metadata("k", "1");
  notes.loss("x", 300);
  notes.pause(true, 0x0102);
  EXPECT_EQ(hex(payload),
            "04 04 01 6b 01 31 "
            "07 04 01 78 ac 02 "
            "09 09 01 02 01 00 00 00 00 00 00");
}

TEST(Layout, a_segment_is_its_place_and_its_blocks_and_a_window_a_time_of_the_device) {
  std::string payload;
  NotesWriter notes(payload);
  const SegmentBlock blocks[] = {{512, BlockState::kAllocated}, {512, BlockState::kFree}};
  notes.segment(0x0102,
                {.device_type = 1,
                 .device = 0,
                 .address = 4096,
                 .bytes = 1024,
                 .stream = 77,
                 .pool = 5,
                 .is_expandable = true,
                 .is_large = true},
                blocks);
  notes.device_window(true, 5);
  EXPECT_EQ(hex(payload),
            "0d 15 02 01 00 00 00 00 00 00 "           // ticks
            "81 02 80 20 80 08 4d 05 03 82 10 80 10 "  // device 1:0, address, bytes, stream, pool, flags, two blocks
            "0e 09 01 05 00 00 00 00 00 00 00");
}

TEST(Layout, the_place_of_memory_is_an_extended_record) {
  SectionWriter section;
  section.begin(0, 1, 0, 0);
  section.add({.kind = Record::kMemory,
               .memory = {.address = 16,
                          .bytes = 512,
                          .total_allocated_bytes = 512,
                          .total_reserved_bytes = 1024,
                          .device_type = 1,
                          .device = 0,
                          .place = MemoryPlace{.stream = 77, .pool = 5, .is_mapped = true}}});
  std::string payload;
  section.append_to(payload);
  EXPECT_EQ(hex(payload),
            "00 01 00 02 01 00 0d "      // 2 records; columns of 1, 0 and 13 bytes
            "00 09 00 "                  // tags: extended, memory; time +0
            "01 03 4d 05 01 "            // kind 1, 3 bytes: stream, pool, mapped
            "20 80 08 00 80 10 81 02");  // the memory record's numbers
}

TEST(Layout, scopes_fall_into_their_groups) {
  EXPECT_EQ(group_of(Scope::kUser), ScopeGroup::kOp);
  EXPECT_EQ(group_of(Scope::kPythonGc), ScopeGroup::kPython);
  EXPECT_EQ(group_of(Scope::kModule), ScopeGroup::kModule);
  EXPECT_EQ(group_of(Scope::kDriver), ScopeGroup::kCall);
}

}  // namespace
}  // namespace firelane::format
