// A memory snapshot on the time axis of a trace of the same process.
//
// torch stamps the events of a snapshot, and those of torch.profiler's and our traces, with one clock that it maps to
// Unix time, so that both lie on one axis as they are. Where the trace has allocations of its own on the same devices,
// the two are compared: if they share none, they are not of one process; if they do, the distance of their clocks is
// measured, and the snapshot moved by it. A trace that does not say where its times lie in Unix time is not joined.
//
// The trace's own allocations of those devices give way to the snapshot's, which have call stacks, segments and pools.
#pragma once

#include <string>

#include "base/result.h"
#include "import/pickle/document.h"
#include "model/raw.h"

namespace firelane::importer {

Result<void> join_snapshot(const std::string& path, RawTrace& trace);
// The same for one that is read already.
Result<void> join_snapshot(const Document& snapshot, const std::string& path, RawTrace& trace);

}  // namespace firelane::importer
