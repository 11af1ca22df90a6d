// A PyTorch memory snapshot (torch.cuda.memory._dump_snapshot) as rows: allocations, frees, failures, segments, the
// state of the allocator, call stacks and annotations.
#pragma once

#include "base/result.h"
#include "import/pickle/document.h"
#include "model/raw.h"

namespace firelane::importer {

// Of a dictionary with segments and device_traces, or, from torch before 2.0, of the list of segments alone.
bool is_snapshot(const Document& document);

RawTrace snapshot_rows(const Document& document);

}  // namespace firelane::importer
