// Opens the traces a verb works on: with a progress bar when that takes over a second on a
// terminal, and with one warning per kind of lost data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"
#include "traces/studied_trace.h"
#include "traces/trace_set.h"

namespace firelane::cli {

// The positional FILE of a verb.
void add_trace_argument(Flags& flags, std::string& path);

// Files of the same run that are joined to a trace.
struct JoinedPaths {
  std::string execution_trace;
  std::string snapshot;
  bool empty() const { return execution_trace.empty() && snapshot.empty(); }
};
// Where several traces were named, or a folder.
Error join_needs_one_trace();
// --execution-trace and --snapshot.
void add_joined_options(Flags& flags, JoinedPaths& joined);

// All of them, loaded. Fails with the first that cannot be read.
Result<std::shared_ptr<const TraceSet>> open_traces(std::vector<std::string> paths, const JoinedPaths& joined = {});
// The set of one.
Result<std::shared_ptr<const StudiedTrace>> open_trace(const std::string& path, const JoinedPaths& joined = {});

}  // namespace firelane::cli
