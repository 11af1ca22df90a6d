// Opens any trace: decompresses (.gz, .zst), recognizes the format, parses on all cores, assembles.
//
//   FL_TRY(Model model, load_trace("trace.json.gz"));
//
// Damaged input is read as far as possible; what was skipped stands in model.losses.
// An Error means that nothing useful could be read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "import/reader.h"
#include "model/model.h"

namespace firelane::importer {

struct LoadOptions {
  unsigned threads = 0;  // 0 = one per core
  // Called now and then from a loading thread: bytes of the file read so far, bytes in all.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
  // Only the light steps, with ops from the full ones: what "run.lane@light" means as a path. An Error if there are
  // none.
  bool light_steps = false;
  // Files of the same run that are joined to the trace; "" = none.
  std::string execution_trace;
  std::string snapshot;
  // A compressed file may not grow beyond this (decompression bombs).
  uint64_t max_content_bytes = uint64_t{1} << 40;
};

// "-" reads standard input. "run.lane@light": the light steps of run.lane, unless there is a file of that name.
Result<Model> load_trace(const std::string& path, const LoadOptions& options = {});

// The same for any source and any list of formats.
Result<Model> load_content(std::unique_ptr<ByteSource> file, const std::string& name, const LoadOptions& options = {},
                           std::span<const Reader> readers = known_readers());

// The same for bytes in memory; `name` stands in messages.
Result<Model> load_trace_bytes(std::string bytes, const std::string& name, const LoadOptions& options = {});

}  // namespace firelane::importer
