// Opens the trace a verb works on: with a progress bar when that takes over a second on a
// terminal, and with one warning per kind of lost data.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "model/model.h"

namespace firelane::cli {

// The positional FILE of a verb.
void add_trace_argument(Flags& flags, std::string& path);

Result<Model> open_trace(const std::string& path);

}  // namespace firelane::cli
