// From files to a job: traces are mapped several at a time, the largest first, and forgotten once their part is made.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "ranks/reduce/rows.h"

namespace firelane::ranks {

// What a part is called that is kept beside its trace.
inline constexpr std::string_view kPartEnding = ".part";

struct GatherOptions {
  // How a path becomes a model, with so many threads; import/load.h has one.
  std::function<Result<Model>(const std::string& path, unsigned threads)> load;
  unsigned workers = 0;      // 0 = one a core; each holds one trace in memory
  bool keep_parts = false;   // beside each trace, and use those that are there and newer than it
  bool use_parts = false;    // only use those that are there
  bool skip_others = false;  // files that are no traces are told to `skipped` instead of failing
  std::function<void(size_t done, size_t total)> progress;
  std::function<void(const std::string& message)> skipped;
};

// Files are traces or parts. Fails with the first (by name) that cannot be read.
Result<void> gather(std::vector<std::string> files, const GatherOptions& options, Intake& intake);

// The traces and parts that names stand for: a file, or a folder with up to three levels of folders. Of a trace and its
// kept part, the trace.
Result<std::vector<std::string>> find_rank_files(const std::vector<std::string>& names);

}  // namespace firelane::ranks
