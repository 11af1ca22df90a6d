// Damage: a reader keeps what is whole, says what is not, and never reads past the end.
#include "format/chunk.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(read("{}"),
            "t.lane: not a firelane trace (no LANE at byte 0); a Chrome trace is opened by its .json or .json.gz name");
  EXPECT_EQ(read("LANE"),
            "t.lane: the file ends inside of its header; the recording was cut off before its first event");
  set_byte(4, 2);
  EXPECT_EQ(read(), "t.lane: .lane version 2, this firelane reads up to 1; update firelane");
}

TEST_F(ChunkDamage, a_file_of_nothing_but_markers_ends) {
  std::string bad = file_.substr(0, kFileHeaderBytes);
  for (int i = 0; i < 2000; ++i) bad += encode_chunk(ChunkKind::kEvents, 0, 1, 0, "").substr(0, 8) + "\x10";
  EXPECT_NE(read(bad).find("torn"), std::string::npos);
}

}  // namespace
}  // namespace firelane::format
