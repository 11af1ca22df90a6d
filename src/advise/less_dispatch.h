// What calling fewer operators saves: with CUDA graphs, a compiler, or larger operators.
#pragma once

#include <cstdint>

#include "advise/context.h"
#include "analyze/graph/whatif.h"

namespace firelane::advise {

// Python and dispatch take `keep` of their time; the program's own code stays. Without a device operators compute
// themselves: only what calling them costs can go.
analyze::WhatIf less_dispatch(const Context& context, double keep);

// What torch.compile spares a CPU: it makes one loop of operators that work element by element, of their way through
// Python, and of the nodes of the backward pass; `keep` of that stays. Products, convolutions and lookups are called as
// before, and so is what is no part of the model: the optimizer, metrics. `own_ns`: per step, what its own code takes
// to check what it was compiled for, a call forward and one back.
struct CompiledChange {
  analyze::WhatIf change;
  int64_t own_ns = 0;
};
inline constexpr int64_t kCompiledCallNs = 100'000;  // measured 50 to 150 us, torch 2.11 on a busy EPYC
CompiledChange compiled_on_cpu(const Context& context, double keep);

}  // namespace firelane::advise
