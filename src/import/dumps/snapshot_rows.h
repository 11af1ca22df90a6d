// A PyTorch memory snapshot (torch.cuda.memory._dump_snapshot) as rows: allocations, frees, failures, segments, the
// state of the allocator, call stacks and annotations.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "import/pickle/document.h"
#include "model/raw.h"

namespace firelane::importer {

// For a dictionary with segments and device_traces, or, from torch before 2.0, of the list of segments alone.
bool is_snapshot(const Document& document);

// Times are nanoseconds since 1970.
struct SnapshotWindow {
  int64_t start_ns = INT64_MIN;
  int64_t end_ns = INT64_MAX;
  bool has(int64_t time_ns) const { return time_ns >= start_ns && time_ns <= end_ns; }
};

// Of events outside of the window, those before it are in the state of the allocator at its start, the others left out:
// kSnapshotOutsideTrace counts both.
RawTrace snapshot_rows(const Document& document, const SnapshotWindow& window = {});

// Whether there is a history, and its events have times (torch 2.2 and later).
bool has_timed_history(const Document& document);

}  // namespace firelane::importer
