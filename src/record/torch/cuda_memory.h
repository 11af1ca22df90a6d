// Memory of torch's CUDA caching allocator: every allocation and free, with stream, pool and the totals after it,
// memory that the allocator takes from and gives back to the driver, failures, and what was alive when recording began.
//
// torch's tracker cannot be removed again; while nothing is recorded it costs one load. What it does:
// cuda_memory_events.h.
#pragma once

#include "record/core/session.h"

namespace firelane::torch_hooks {

// Whether the program has started CUDA, asked without starting it.
bool is_cuda_started() noexcept;
// From now on memory events of all GPUs are recorded; what is alive at this moment goes into the trace, too. If the
// program has not started CUDA yet, this happens at the first op after it has. Called again after a pause, in which
// events were missed. What fails becomes a loss. REQUIRES: the session records, and lives until disable.
void enable_cuda_memory_hook(record::Session& session) noexcept;
// Also writes the allocator's own peaks into the trace.
void disable_cuda_memory_hook(record::Session& session) noexcept;

}  // namespace firelane::torch_hooks
