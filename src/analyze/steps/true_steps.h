// The steps that tell how long one takes without recording: those that our recorder timed while no hook was on.
//
// In a recording that begins early in the program, the steps before the recorded ones are its warm-up: torch's
// allocators grow, cuDNN looks for its algorithms, kernels are loaded. Where even the fastest of them is far slower
// than the slowest after the recording, they say nothing about the others, and count for no usual step and no slow one.
#pragma once

#include <vector>

#include "model/model.h"

namespace firelane::analyze {

// Rows of timed_steps, in order. All undisturbed ones where there are too few after the recording to tell.
std::vector<Row> true_steps(const TimedSteps& timed);

}  // namespace firelane::analyze
