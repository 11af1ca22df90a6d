// What is alive in memory at one moment, which the page asks for; `firelane memory` is in the registry.
#pragma once

#include "analyze/memory/memory.h"
#include "analyze/memory/memory_at.h"
#include "report/table.h"

namespace firelane::report {

// Sums by category and by owner, and the largest blocks themselves.
Report alive_report(const Model& model, const analyze::DeviceMemory& device, const analyze::MemoryMoment& moment,
                    int64_t time_ns, size_t max_blocks);

}  // namespace firelane::report
