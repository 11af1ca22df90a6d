// What a format of traces is to the rest of the house: how it is recognized, and how its bytes become rows.
//
// A new format is a folder beside json/ and lane/ with a Reader in it, and a line in known_readers() (readers.cc).
// Decompression is done before a reader sees the content, assembly after it: a reader fills rows (model/raw.h), and
// counts what it skipped or repaired in the losses of the trace and its parts (model/stats.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "import/byte_source.h"
#include "model/raw.h"

namespace firelane::importer {

// At least so many bytes of the content, where it has them, are there to be recognized.
inline constexpr size_t kSniffBytes = 4096;

struct ReadRequest {
  std::string name;  // of the file, for messages
  unsigned threads = 1;
  uint64_t file_bytes = 0;     // on disk
  bool is_compressed = false;  // the content is larger than the file
  uint64_t max_content_bytes = uint64_t{1} << 40;
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
};

struct Reader {
  std::string_view format;
  // By the first bytes of the content.
  bool (*sniff)(std::string_view begin);
  // Damaged content is read as far as possible; an Error means that nothing useful could be read. The source may stay
  // alive in the trace, to read args from it. Sets info.format, info.origin and info.content_bytes; the caller sets
  // what is known about the file.
  Result<RawTrace> (*read)(std::unique_ptr<ByteSource> content, const ReadRequest& request);
};

// In the order in which they are asked. The last one takes everything, and says what is wrong with it.
std::span<const Reader> known_readers();

}  // namespace firelane::importer
