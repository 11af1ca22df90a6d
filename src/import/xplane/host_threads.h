// Threads of a host as they were. A profiler of GPUs has the runtime calls of a thread on a line of their own ("Host
// Threads/123"), beside the line with what JAX or TensorFlow did in the same thread, and nothing in the file says that
// the two are one: the calls lie inside of what the framework did.
#pragma once

#include <cstddef>
#include <unordered_set>

#include "model/raw.h"

namespace firelane::importer::xplane {

// Puts calls onto the lane of their thread, where it is found. Only slices from `first` on are looked at.
void join_host_threads(RawPart& part, size_t first);

// Ranges of the framework that are called like an HLO op run it: operators.
void find_hlo_ranges(RawPart& part, size_t first, const std::unordered_set<StringId>& hlo_ops, StringId category);

}  // namespace firelane::importer::xplane
