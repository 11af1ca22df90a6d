// Dumps of NCCL's flight recorders, for `firelane hangs` and for folders that hold them beside traces.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/flight_log.h"

namespace firelane::cli {

// By its first bytes: torch's pickle, or JSON with the keys of a dump.
bool may_be_dump(const std::string& path);

// For folders, the files that may be dumps; other names are kept if they may be dumps.
std::vector<std::string> find_dumps(const std::vector<std::string>& names);

// One a rank. Fails with the first that cannot be read, says no rank, or is of a rank that was there. `skip_others`:
// what turns out to be something else (a memory snapshot is a pickle as well) is left out.
Result<std::vector<FlightLog>> load_logs(const std::vector<std::string>& files, bool skip_others = false);

}  // namespace firelane::cli
