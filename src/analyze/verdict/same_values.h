// Operators that compute what was computed before: the same call on the same, unchanged data.
//
// Where a recording follows tensors, each value gets a number, as compilers do it. A tensor from before the recording
// is a value of its own; one that an operator allocates has a number made of the operator's name, its shapes, its
// numbers and those of its inputs; an operator that writes in place makes a new value of what it writes. Two calls with
// the same number compute the same. When in doubt a value is a new one: random numbers, memory that nobody has
// written yet, collectives and other libraries' operators, and views of which it is not known what they show. Numbers
// that Python multiplies with have no value in a trace: they count as the same where the operator before them computed
// the same as well.
//
// Not seen: writes from outside of operators (NumPy on the same memory). From step to step nothing is compared: a
// benchmark that trains on one batch for ever repeats all that does not learn.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/steps/find_steps.h"
#include "analyze/steps/phases.h"
#include "model/model.h"

namespace firelane::analyze {

struct SameValue {
  Row op = kNoRow;     // outermost
  Row first = kNoRow;  // the call that computed it first
};

struct SameValues {
  bool is_known = false;           // the recording follows tensors, and shows all that writes them
  std::vector<SameValue> in_step;  // computed before in the same step, in order of time
};

// Of outermost operators in the judged steps that are no part of a backward pass or an update. What is written later
// counts as no repetition: each needs memory of its own.
SameValues find_same_values(const Model& model, const Phases& phases, const StepList& steps);

}  // namespace firelane::analyze
