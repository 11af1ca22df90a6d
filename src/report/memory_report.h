// What `firelane memory` shows: each device's peak and what is alive at it, then steps, spikes, growth and copies.
#pragma once

#include "analyze/compute/copies.h"
#include "analyze/memory/memory.h"
#include "analyze/memory/memory_at.h"
#include "report/table.h"

namespace firelane::report {

struct MemoryReportOptions {
  size_t max_rows = 0;  // of each table; 0 = all
  bool curve = false;   // the curve of allocated and reserved bytes, too
};

Report memory_report(const Model& model, const analyze::MemoryReport& memory, const analyze::CopyTable& copies,
                     const MemoryReportOptions& options = {});

// What is alive at one moment: sums by category and by owner, and the largest blocks themselves.
Report alive_report(const Model& model, const analyze::DeviceMemory& device, const analyze::MemoryMoment& moment,
                    int64_t time_ns, size_t max_blocks);

}  // namespace firelane::report
