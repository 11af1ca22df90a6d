// Every CPU allocation and free of torch, on every thread: while recording, an allocator of ours wraps torch's
// and forwards everything to it.
//
// Why not torch's own memory reporting: its slot is per thread, so allocations of threads started later are
// missed, and torch.profiler casts what it finds there to its own type.
//
// A block carries its deleter. Blocks allocated through our allocator carry ours, which calls the
// original, whenever they are freed. Older blocks carry the original: their frees are not seen.
// Storages point to their allocator, so ours is never destroyed.
#pragma once

#include <cstdint>

namespace firelane::torch_hooks {

// False if this allocator cannot be wrapped (`reason` says why): the program continues without memory events.
bool enable_cpu_memory_hook(const char*& reason) noexcept;
// The original allocator is back when this returns. Idempotent.
void disable_cpu_memory_hook() noexcept;

// Blocks whose frees will not be seen, because too many are alive at once.
uint64_t cpu_memory_untracked() noexcept;

}  // namespace firelane::torch_hooks
