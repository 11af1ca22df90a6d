// Which gradients nobody uses, where a recording follows tensors: what is accumulated and given back before an
// optimizer reads it.
#pragma once

#include <optional>

#include "advise/gradient_use.h"

namespace firelane::advise {

// Nothing where the recording does not follow tensors, or has no optimizer.
std::optional<Gradients> followed_gradients(const Context& context, const analyze::Phases& phases);

}  // namespace firelane::advise
