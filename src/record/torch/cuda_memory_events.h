// What torch's CUDA caching allocator says about itself, as records: without the allocator, so that tests feed it.
//
// torch calls on_event() under the lock of the device's allocator, on the thread that allocates: nothing here waits,
// allocates or takes the GIL. Recording of a device begins inside of torch's own snapshot, under that lock, too: what
// the snapshot has and what events say fit together to the byte.
//
//   open();                                  // from the SNAPSHOT event of each device on, its events are recorded
//   auto snapshot = allocator.snapshot();    // on the same thread
//   snapshot_taken(snapshot.segments, session);
//   close();
//
// After a pause, in which events were not recorded, the first three are done again.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstddef>
#include <vector>

#include "record/core/session.h"

namespace firelane::torch_hooks::cuda_memory {

void on_event(const c10::cuda::CUDACachingAllocator::TraceEntry& event) noexcept;
void open() noexcept;
// There was no snapshot.
void give_up() noexcept;
// Writes what was live into the session's notes. Devices that sent no SNAPSHOT event (an older torch) begin here.
void snapshot_taken(const std::vector<c10::cuda::CUDACachingAllocator::SegmentInfo>& segments,
                    record::Session& session);
void close() noexcept;
// Devices that were recorded since open(): 0 .. count - 1.
size_t device_count() noexcept;

}  // namespace firelane::torch_hooks::cuda_memory
