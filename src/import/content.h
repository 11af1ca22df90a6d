// A file that is opened, decompressed where it is compressed, and not yet read: for what is read beside a trace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "import/byte_source.h"

namespace firelane::importer {

struct Content {
  std::unique_ptr<ByteSource> source;
  std::string begin;  // at least kSniffBytes of it, where it has them
  uint64_t file_bytes = 0;
  bool is_compressed = false;
};

Result<Content> open_content(const std::string& path);

}  // namespace firelane::importer
