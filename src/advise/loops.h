// Loops as rules see them: the change if one batched call did the work of all iterations, and the words for what
// repeats.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "advise/context.h"
#include "advise/finding.h"
#include "analyze/verdict/loops.h"

namespace firelane::advise {

// Loops that read numbers one by one and do little else: what they cost is a matter of synchronizations.
bool only_reads(const analyze::Loop& loop);

// Cost, share, gain and events of a finding about these loops; also without what waits in them.
void fill_from_loops(const Context& context, const std::vector<const analyze::Loop*>& loops, Finding& finding);

// Without a device, of a stretch of the leading thread in which small operators run: the part that stays if one call on
// a batch does the work of all. `dispatch`: of all its segments (analyze::dispatch_shares).
double kept_in_batch(const Context& context, const std::vector<double>& dispatch, int64_t start_ns, int64_t end_ns);

// "aten::eq, aten::sum and 3 more".
std::string body_text(const Model& model, const analyze::Loop& loop);

}  // namespace firelane::advise
