// What takes the largest part of a step, if no rule explains it.
#pragma once

#include <string>
#include <vector>

#include "advise/context.h"
#include "advise/finding.h"

namespace firelane::advise {

// "largest operator: aten::linear with inputs of [[32, 512, 2048], [128000, 2048], []] takes 41% of a step, 1 call, at
// 73% of the roofline: useful work; check that all of it is needed": an operator with inputs of the same shapes that
// takes a quarter of a step, or one with any inputs that takes two fifths. "" where none does.
std::string largest_note(const Context& context, const std::vector<Finding>& findings);

}  // namespace firelane::advise
