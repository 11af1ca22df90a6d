// What hardware counters say about the rows of a roofline.
#pragma once

#include "analyze/compute/roofline.h"

namespace firelane::analyze {

// REQUIRES: rows and row_of_work are complete.
void measure_rows(const Model& model, Roofline& roofline);

}  // namespace firelane::analyze
