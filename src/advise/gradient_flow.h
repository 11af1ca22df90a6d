// Which gradients are unused, if a recording follows tensors: those accumulated and freed before an optimizer reads
// them.
#pragma once

#include <optional>

#include "advise/gradient_use.h"

namespace firelane::advise {

// Empty if the recording does not follow tensors, or has no optimizer.
std::optional<Gradients> followed_gradients(const Context& context, const analyze::Phases& phases);

}  // namespace firelane::advise
