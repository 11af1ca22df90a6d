// Damage: a reader keeps what is whole, says what is not, and never reads past the end.
#include "format/chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "format/testing.h"

namespace firelane::format {
namespace {

using test::StringSink;

// A file of three chunks: "first" (stored), 5000 x 'x' (compressed), "third" (stored).
class ChunkDamage : public ::testing::Test {
 protected:
  ChunkDamage() {
    StringSink sink;
    ChunkWriter writer(sink, 1);
    EXPECT_EQ(writer.write_header(7), "");
    offsets_.push_back(writer.bytes_written());
    EXPECT_EQ(writer.write_chunk(ChunkKind::kNotes, "first"), "");
    offsets_.push_back(writer.bytes_written());
    EXPECT_EQ(writer.write_chunk(ChunkKind::kEvents, std::string(5000, 'x')), "");
    offsets_.push_back(writer.bytes_written());
    EXPECT_EQ(writer.write_chunk(ChunkKind::kNotes, "third"), "");
    EXPECT_EQ(writer.finish(0), "");
    file_ = sink.content;
  }

  void set_byte(size_t at, int value) { file_[at] = static_cast<char>(value); }
  void fix_checksum(size_t chunk) {
    const size_t at = offsets_[chunk];
    uint32_t stored = 0;
    std::memcpy(&stored, file_.data() + at + 8, 4);
    const uint32_t sum = crc32c(std::string_view(file_).substr(at + kChunkHeaderBytes, stored),
                                crc32c(std::string_view(file_).substr(at, 20)));
    std::memcpy(file_.data() + at + 20, &sum, 4);
  }
  // "first xxx third", then how it went.
  std::string read() const { return read(file_); }
  static std::string read(const std::string& file) {
    ChunkReader reader(file);
    if (const auto header = reader.read_header("t.lane"); !header.ok()) return header.error().message;
    std::string out;
    Chunk chunk;
    while (reader.next(chunk)) {
      if (chunk.kind == ChunkKind::kIndex) continue;
      out += chunk.payload.size() > 100 ? "xxx" : std::string(chunk.payload);
      out += ' ';
    }
    if (reader.damaged_chunks() > 0) out += "damaged " + std::to_string(reader.damaged_chunks()) + " ";
    return out + (reader.clean_end() ? "clean" : "torn");
  }

  std::vector<uint64_t> offsets_;
  std::string file_;
};

TEST_F(ChunkDamage, a_whole_file_reads_clean) { EXPECT_EQ(read(), "first xxx third clean"); }

TEST_F(ChunkDamage, a_cut_at_any_byte_keeps_the_chunks_before_it) {
  for (size_t cut = kFileHeaderBytes; cut < file_.size(); ++cut) {
    std::string expected;
    if (cut >= offsets_[1]) expected += "first ";
    if (cut >= offsets_[2]) expected += "xxx ";
    if (cut >= offsets_[2] + kChunkHeaderBytes + 5) expected += "third ";
    const std::string seen = read(file_.substr(0, cut));
    EXPECT_EQ(seen, expected + "torn") << "cut at byte " << cut;
  }
}

TEST_F(ChunkDamage, any_byte_changed_costs_at_most_its_own_chunk) {
  const std::string whole = file_;
  for (size_t at = kFileHeaderBytes; at < file_.size() - kTrailerBytes; ++at) {
    file_ = whole;
    set_byte(at, whole[at] ^ 0x41);
    size_t hit = 0;
    while (hit + 1 < offsets_.size() && at >= offsets_[hit + 1]) ++hit;
    const bool in_index = at >= offsets_[2] + kChunkHeaderBytes + 5;
    const std::string seen = read();
    EXPECT_EQ(seen.find("first") != std::string::npos, in_index || hit != 0) << at << ": " << seen;
    EXPECT_EQ(seen.find("xxx") != std::string::npos, in_index || hit != 1) << at << ": " << seen;
    EXPECT_EQ(seen.find("third") != std::string::npos, in_index || hit != 2) << at << ": " << seen;
    // A last chunk whose size runs past the end cannot be told from one that was cut off.
    EXPECT_TRUE(seen.ends_with("damaged 1 clean") || seen.ends_with("torn")) << at << ": " << seen;
  }
}

TEST_F(ChunkDamage, a_chunk_that_lies_about_its_size_is_skipped) {
  set_byte(offsets_[1] + 12, 1);  // raw size 5000 -> 4865, checksum right
  fix_checksum(1);
  EXPECT_EQ(read(), "first third damaged 1 clean");
}

TEST_F(ChunkDamage, an_unknown_kind_is_still_a_chunk) {
  set_byte(offsets_[0] + 4, 200);
  fix_checksum(0);
  ChunkReader reader(file_);
  ASSERT_TRUE(reader.read_header("t").ok());
  Chunk chunk;
  ASSERT_TRUE(reader.next(chunk));
  EXPECT_EQ(static_cast<int>(chunk.kind), 200);
  EXPECT_EQ(chunk.payload, "first");
}

TEST_F(ChunkDamage, other_files_and_later_versions_are_refused_with_a_reason) {
  EXPECT_EQ(read("{}"), "t.lane: not a .lane file (no LANE at byte 0)");
  EXPECT_EQ(read("LANE"), "t.lane: the file ends inside its header: the recording was cut off before its first event");
  set_byte(4, 2);
  EXPECT_EQ(read(), "t.lane: .lane version 2, this firelane reads up to 1; update firelane");
}

TEST_F(ChunkDamage, a_file_of_nothing_but_markers_ends) {
  std::string bad = file_.substr(0, kFileHeaderBytes);
  for (int i = 0; i < 2000; ++i) bad += encode_chunk(ChunkKind::kEvents, 0, 1, 0, "").substr(0, 8) + "\x10";
  EXPECT_NE(read(bad).find("torn"), std::string::npos);
}

TEST_F(ChunkDamage, zeros_at_the_end_are_room_that_was_set_aside) {
  const size_t last = offsets_[2] + kChunkHeaderBytes + 5;
  EXPECT_EQ(read(file_.substr(0, last) + std::string(9000, '\0')), "first xxx third torn");
  EXPECT_EQ(read(file_.substr(0, last - 3) + std::string(9000, '\0')), "first xxx torn") << "killed in a write";
  EXPECT_EQ(read(file_.substr(0, last) + std::string(9000, '\0') + "x"), "first xxx third damaged 1 torn");
}

// A disk of which others take what is not reserved.
class FullSink final : public ByteSink {
 public:
  explicit FullSink(size_t room) : room_(room) {}
  std::string reserve(size_t bytes) override {
    if (content.size() + bytes > std::max(room_, reserved_)) return "full";
    reserved_ = std::max(reserved_, content.size() + bytes);
    return {};
  }
  std::string write(std::string_view bytes) override {
    if (content.size() + bytes.size() > reserved_) return "full";
    content += bytes;
    return {};
  }
  std::string name() const override { return "full"; }
  std::string content;

 private:
  size_t room_;
  size_t reserved_ = 0;
};

std::string incompressible(size_t bytes, uint32_t seed) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return text;
}

struct Reading {
  size_t chunks = 0;
  std::string last_notes;
  bool is_clean = false;
};
Reading read_all(const std::string& file) {
  Reading reading;
  ChunkReader reader(file);
  EXPECT_TRUE(reader.read_header("t").ok());
  for (Chunk chunk; reader.next(chunk); ++reading.chunks) {
    if (chunk.kind == ChunkKind::kNotes) reading.last_notes = chunk.payload;
  }
  reading.is_clean = reader.clean_end() && reader.damaged_chunks() == 0;
  return reading;
}

TEST(EarlyEnd, fits_at_whatever_byte_the_disk_is_full) {
  const std::string notes = incompressible(ChunkWriter::kMaxLastNotes, 1);
  for (size_t room = 9000; room < 9300; ++room) {
    FullSink sink(room);
    ChunkWriter writer(sink, 1);
    ASSERT_EQ(writer.write_header(7), "");
    size_t chunks = 0;
    while (writer.write_chunk(ChunkKind::kEvents, incompressible(50 + chunks, 2)).empty()) ++chunks;
    EXPECT_EQ(writer.write_last_notes(notes), "") << room;
    EXPECT_EQ(writer.finish(0), "") << room;
    const Reading reading = read_all(sink.content);
    EXPECT_EQ(reading.chunks, chunks + 2) << "and notes, index";
    EXPECT_EQ(reading.last_notes, notes);
    EXPECT_TRUE(reading.is_clean);
  }
}

TEST(EarlyEnd, goes_without_a_list_of_chunks_that_has_no_room) {
  FullSink sink(1 << 20);
  ChunkWriter writer(sink, 1);
  ASSERT_EQ(writer.write_header(7), "");
  size_t chunks = 0;
  // Sizes without a pattern: the list of offsets does not compress to nothing.
  for (uint32_t seed = 1;; seed = seed * 1664525 + 1013904223, ++chunks) {
    if (!writer.write_chunk(ChunkKind::kEvents, incompressible(20 + (seed >> 27), seed)).empty()) break;
  }
  EXPECT_EQ(writer.write_last_notes("reason"), "");
  EXPECT_EQ(writer.finish(0), "");
  const Reading reading = read_all(sink.content);
  EXPECT_EQ(reading.chunks, chunks + 2);
  EXPECT_EQ(reading.last_notes, "reason");
  EXPECT_TRUE(reading.is_clean);
}

}  // namespace
}  // namespace firelane::format
