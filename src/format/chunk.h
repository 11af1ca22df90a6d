// Chunks: the self-contained pieces of a .lane file (layout.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/layout.h"
#include "format/sink.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace firelane::format {

// Writes a file: header, chunks, and at the end the index and the trailer. Every function returns "" or the sink's
// reason. Room for an end is set aside before each chunk, so that a file whose disk became full still says so: after
// write_chunk() failed, write_last_notes() and finish() can be expected to succeed.
class ChunkWriter {
 public:
  // `level`: zstd's, 1 to 3 while recording.
  ChunkWriter(ByteSink& sink, int level);
  ~ChunkWriter();
  ChunkWriter(const ChunkWriter&) = delete;
  ChunkWriter& operator=(const ChunkWriter&) = delete;

  std::string write_header(uint64_t trace_id);
  // REQUIRES: raw.size() <= kMaxChunkBytes
  std::string write_chunk(ChunkKind kind, std::string_view raw);
  // A notes chunk that may use the room set aside. REQUIRES: raw.size() <= kMaxLastNotes; called at most once.
  std::string write_last_notes(std::string_view raw);
  // Without the list of chunks in the index when there is no room for it.
  std::string finish(uint64_t event_count);
  uint64_t bytes_written() const { return offset_; }

  static constexpr size_t kMaxLastNotes = 6 << 10;

 private:
  struct Entry {
    uint64_t offset;
    ChunkKind kind;
  };
  static constexpr size_t kMaxEntries = 1 << 18;  // 4 MiB; longer recordings have no index, only a scan
  static constexpr size_t kEndBytes = 8 << 10;    // set aside: last notes, index without a list, trailer

  std::string_view encode(ChunkKind kind, std::string_view raw);
  std::string append(ChunkKind kind, std::string_view chunk);
  std::string_view encode_index(uint64_t event_count, bool with_list);

  ByteSink& sink_;
  ZSTD_CCtx_s* zstd_;
  int level_;
  uint64_t offset_ = 0;
  uint32_t next_number_ = 0;
  std::string buffer_;
  std::vector<Entry> entries_;
};

// A chunk as it is in the file, uncompressed: for tests and golden bytes.
std::string encode_chunk(ChunkKind kind, uint8_t flags, uint32_t raw_size, uint32_t number, std::string_view stored);

struct Chunk {
  ChunkKind kind{};
  uint32_t number = 0;
  uint64_t offset = 0;
  std::string_view payload;  // decompressed; valid until the next call of next()
};

// Iterates over the chunks of a file, past any damage: after a chunk whose header, checksum or
// content is wrong, it looks for the next marker.
class ChunkReader {
 public:
  explicit ChunkReader(std::string_view file);
  ~ChunkReader();
  ChunkReader(const ChunkReader&) = delete;
  ChunkReader& operator=(const ChunkReader&) = delete;

  // An error if this is not a .lane file, or one of a later major version.
  Result<void> read_header(const std::string& name);
  uint64_t trace_id() const { return trace_id_; }
  bool next(Chunk& chunk);

  uint64_t damaged_chunks() const { return damaged_; }
  // After the last next(): whether there was a trailer; whether the file ends inside a chunk.
  bool clean_end() const { return clean_end_; }
  bool cut_off() const { return cut_off_; }
  uint64_t content_bytes() const { return content_bytes_; }

 private:
  enum class Outcome : uint8_t { kOk, kDamaged, kCutOff };
  Outcome try_chunk(size_t at, Chunk& chunk, size_t& end);

  std::string_view file_;
  size_t at_ = 0;
  uint64_t trace_id_ = 0;
  uint64_t damaged_ = 0;
  uint64_t content_bytes_ = 0;
  uint64_t searched_bytes_ = 0;  // checksummed and found damaged
  bool cut_off_ = false;
  bool clean_end_ = false;
  ZSTD_DCtx_s* zstd_;
  std::string raw_;
};

}  // namespace firelane::format
