// Transparent decompression: what stands between a file and the reader of its format.
#pragma once

#include <memory>
#include <string_view>

#include "import/byte_source.h"

namespace firelane::importer {

struct Compression {
  std::string_view name;
  bool (*sniff)(std::string_view begin);
  // `max_content_bytes`: the content may not grow beyond it.
  std::unique_ptr<ByteSource> (*open)(std::unique_ptr<ByteSource> compressed, uint64_t max_content_bytes);
};

// Null for content that is not compressed, or by something else.
const Compression* find_compression(std::string_view begin);

// Traces are compressed 10 to 40 times. What grows far beyond that is not a trace but a decompression bomb: why it is
// not opened, or "".
std::string refuse_bomb(uint64_t compressed_bytes, uint64_t content_bytes, uint64_t max_content_bytes);

}  // namespace firelane::importer
