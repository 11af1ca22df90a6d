// `firelane export DIR`: ranks of a job in one file, on one time axis, with arrows between them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "export/byte_sink.h"
#include "export/export_trace.h"

namespace firelane::cli {

// "0,3,8-11".
Result<std::vector<int64_t>> parse_ranks(const std::string& text);

// One trace is in memory at a time. `ranks` empty: those that tell the most. Says on standard error which they are.
Result<void> export_ranks(const std::string& folder, const std::vector<int64_t>& ranks,
                          const exporter::ExportOptions& what, exporter::ByteSink& sink);

}  // namespace firelane::cli
