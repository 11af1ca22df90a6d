// Reads a Chrome or Kineto JSON trace into raw rows, on several threads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "import/byte_source.h"
#include "import/reader.h"
#include "model/raw.h"

namespace firelane::importer {

struct JsonOptions {
  unsigned threads = 1;
  size_t chunk_bytes = size_t{1} << 20;
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
};

// Takes all texts, and says what is wrong with those that are not JSON.
Reader json_reader();

// The source stays alive in the trace, which reads args from it.
Result<RawTrace> read_json(std::shared_ptr<ByteSource> source, const std::string& name, const JsonOptions& options);

}  // namespace firelane::importer
