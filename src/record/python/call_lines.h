// The line of the program that calls the running operator, found by looking at the thread's own frames, without the
// GIL: torch gives it up while an operator runs.
//
// Lines of torch and of Python's own library are passed over. Told are the nearest line of an installed package, if
// there is one before the program's; the program's nearest; and the program's line that called that function:
// "modeling_gpt2.py(302): GPT2MLP.forward;model.py(12): Scorer.forward;train.py(40): main".
#pragma once

#include "record/core/call_lines.h"

namespace firelane::python_hooks {

// With the GIL. Both pointers are null if it is not known how this version of Python keeps its frames.
record::CallLines call_lines() noexcept;

// ns that asking for the line adds to an operator, measured now. With the GIL. REQUIRES: call_lines() gave pointers.
double measure_line_cost() noexcept;

}  // namespace firelane::python_hooks
