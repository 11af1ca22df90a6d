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
// Not seen: writes from outside of operators (NumPy on the same memory). A benchmark that reuses one batch
// repeats everything that does not learn from step to step: users of `every_step` have to account for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::analyze {

struct SameValue {
  Row op = kNoRow;     // outermost
  Row first = kNoRow;  // the call that computed it first
  // What it takes: results of these operators, and at these of its inputs tensors from before the recording.
  std::vector<Row> makers;
  std::vector<size_t> from_before;
};

struct SameValues {
  bool is_known = false;           // the recording follows tensors, and shows all that writes them
  std::vector<SameValue> in_step;  // computed before in the same step, in order of time
  // Computed in the step before as well, and for the first time in this one: from values that no step changes.
  std::vector<SameValue> every_step;
  std::vector<SameValue> written;  // would be among these, but what they made is written later
};

// For outermost operators in the judged steps that are no part of a backward pass or an update. What is written later
// counts as no repetition: each needs memory of its own.
SameValues find_same_values(const StudiedTrace& trace);

}  // namespace firelane::analyze
