// Tells the reads of a GradScaler from those of the program itself.
#pragma once

#include <vector>

#include "model/model.h"

namespace firelane::advise {

// Whether nearly all of these calls (rows of host_slices, in order of time) are each the first after gradients were
// unscaled.
bool are_of_scaler(const Model& model, const std::vector<Row>& calls);

}  // namespace firelane::advise
