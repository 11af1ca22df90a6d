// Slices of one tensor that are differentiated one by one: the gradient of each is a tensor of zeros as large as what
// it was taken from, with the slice's gradient in it, and all of them are added up.
#pragma once

#include <vector>

#include "advise/context.h"
#include "advise/finding.h"

namespace firelane::advise {

// A finding of repeated-operators; none where the recording does not follow tensors.
std::vector<Finding> sliced_gradients(const Context& context);

}  // namespace firelane::advise
