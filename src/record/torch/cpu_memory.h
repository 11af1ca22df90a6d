// Every CPU allocation and free of torch, on every thread: while recording, torch's CPU allocator stands
// behind one of ours that passes everything on.
//
// Why not torch's own memory reporting: its slot is per thread, so allocations of threads started later are
// missed, and torch.profiler casts what it finds there to its own type.
//
// A block carries its deleter with it. Blocks allocated while we are in place carry ours, whenever they are
// freed; it calls the allocator's own one. Blocks from before carry the original: their frees pass us by.
// Storages remember their allocator, so ours lives for ever.
#pragma once

#include <cstdint>

namespace firelane::torch_hooks {

// False when this allocator cannot be wrapped (`reason` says why): the program goes on without memory events.
bool enable_cpu_memory_hook(const char*& reason) noexcept;
// The original allocator is back when this returns. Idempotent.
void disable_cpu_memory_hook() noexcept;

// Blocks whose frees will not be seen, because too many live at once.
uint64_t cpu_memory_untracked() noexcept;

}  // namespace firelane::torch_hooks
