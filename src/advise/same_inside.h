// Operators inside others that run again on the same, unchanged data: a quantile sorts, whichever quantile is
// requested.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "advise/context.h"

namespace firelane::advise {

// In the analyzed steps, those of the forward pass below another operator that had run before in the same step, with
// the same numbers, on tensors that fill their memory and were not written since. `wanted`: by name. In order of time;
// of one that calls another only the outer one. Empty where the recording does not follow tensors and memory.
std::vector<Row> same_inside(const Context& context, const std::function<bool(std::string_view name)>& wanted);

}  // namespace firelane::advise
