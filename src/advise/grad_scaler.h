// Distinguishes the reads of a GradScaler, and of gradient norms, from the program's other reads.
#pragma once

#include <vector>

#include "model/model.h"

namespace firelane::advise {

// Whether nearly all of these calls (rows of host_slices, in order of time) are each the first after gradients were
// unscaled.
bool are_of_scaler(const Model& model, const std::vector<Row>& calls);

// Whether nearly all of these calls read the norm of the gradients, right after it was computed: clip_grad_norm_ that
// checks whether it is finite, or a log of it.
bool are_of_norms(const Model& model, const std::vector<Row>& calls);

}  // namespace firelane::advise
