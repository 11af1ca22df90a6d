// Slices of one tensor that are differentiated one by one: the gradient of each is a tensor of zeros of the full size
// with the slice's gradient in it, and all of them are summed.
#pragma once

#include <vector>

#include "advise/context.h"
#include "advise/finding.h"

namespace firelane::advise {

// A finding of repeated-operators; empty if the recording does not follow tensors.
std::vector<Finding> sliced_gradients(const Context& context);

}  // namespace firelane::advise
