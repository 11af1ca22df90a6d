// Sorts whose input does not change: whether there are any, and what sorting once would save.
#pragma once

#include <string_view>
#include <vector>

#include "advise/context.h"
#include "advise/evidence.h"
#include "advise/finding.h"
#include "model/model.h"

namespace firelane::advise {

// What leaving out the evidence would save, as other findings say it: for findings that are no gain by themselves.
void promise(const Context& context, Evidence& evidence, Finding& finding);

bool sorts(std::string_view op_name);

// `calls`: of one operator that sorts. Where each step has as many, with the same data, it would be done once, before
// the loop: the finding then promises that, and says how it is known.
void promise_sorting_once(const Context& context, std::vector<Row> calls, Finding& finding);

}  // namespace firelane::advise
