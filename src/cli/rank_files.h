// Opens the traces or parts of a job for `firelane ranks` and `firelane diagnose DIR`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ranks/reduce/reduce.h"

namespace firelane::cli {

struct RankFilesOptions {
  bool keep_parts = false;
  uint32_t workers = 0;
};

// Names are traces, parts, or folders of them; progress goes to standard error.
Result<ranks::Reduction> open_job(const std::vector<std::string>& names, const RankFilesOptions& options = {});

}  // namespace firelane::cli
