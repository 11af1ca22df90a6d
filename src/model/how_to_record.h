// What to do so that the next trace has what this one lacks, in the words of the tool that wrote it.
#pragma once

#include <string>
#include <string_view>

#include "model/front.h"
#include "model/model.h"
#include "model/stats.h"

namespace firelane {

// For formats that cannot contain it in any case.
inline constexpr std::string_view kNotGiven = "this format does not hold it; record with torch.profiler or firelane";

// Whether torch.profiler's options, or ours, are what a trace was recorded with.
bool records_as_torch(Origin origin);

// "record with --shapes", "record with nsys profile --pytorch=autograd-shapes-nvtx"; where the tool cannot record it,
// which one can: "rocprofv3 does not record it; ...".
std::string how_to_record(const TraceInfo& info, RecordOption option);

// What to do about a loss; most tools have no words of their own for it.
std::string_view remedy_for(const TraceInfo& info, Stat stat);

}  // namespace firelane
