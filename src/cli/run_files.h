// Files of runs as commands take them: a trace, a folder of traces, or a pattern.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "compare/run/run.h"

namespace firelane::cli {

// Each name is a file, a folder (the traces in it, by name) or a pattern with * or ?.
Result<std::vector<std::string>> find_run_files(const std::vector<std::string>& names);

// One run a file. `queries`: name and SQL of further numbers, each the first cell of the first row. Small traces are
// summarized while the next is loaded; of large ones there is one in memory at a time.
Result<std::vector<compare::Run>> read_runs(const std::vector<std::string>& files,
                                            const std::vector<std::pair<std::string, std::string>>& queries = {});
// Both together.
Result<std::vector<compare::Run>> open_runs(const std::vector<std::string>& names,
                                            const std::vector<std::pair<std::string, std::string>>& queries = {});

}  // namespace firelane::cli
