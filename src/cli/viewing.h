// The viewer in the browser, for the verbs that open it: `view`, `compare --view` and `ranks --view`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"
#include "cli/open.h"
#include "cli/rank_files.h"
#include "serve/comparison.h"

namespace firelane::cli {

struct ViewOptions {
  int port = 0;
  bool no_open = false;
  JoinedPaths joined;  // of the only trace
};

// --port and --no-open.
void add_view_options(Flags& flags, ViewOptions& options);

// Serves the traces on the loopback interface until Ctrl-C. Returns only with an Error: a trace that cannot be read, no
// free port.
Result<int> serve_traces(const std::vector<std::string>& paths, const ViewOptions& options,
                         serve::Comparison comparison = {});

// The ranks of a job, of folders, traces or parts: their parts are read before, a trace when the page asks for it.
Result<int> serve_ranks(const std::vector<std::string>& names, const RankFilesOptions& files, double price_per_hour,
                        const ViewOptions& options);

}  // namespace firelane::cli
