// Stacks that were sampled beside the recording: metadata `stack_samples` of a .lane file, in pieces that are each
// complete in themselves.
//
//   {"stacks": ["inner.py(7): f;outer.py(41): main"], "samples": [[ticks, ns, thread, stack, flags], ...]}
//
// ns: the time since the look before; thread: the system's id; flags: 1 on a core, 2 held the GIL, 4 whether it was on
// a core is not known.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/raw.h"

namespace firelane::importer {

// Rows whose time is still in ticks. What does not fit the form counts as damaged.
void add_stack_samples(std::string_view json, uint32_t pid, RawPool& pool, RawPart& part);

}  // namespace firelane::importer
