// Pipeline parallelism as sends and receives show it: stages, micro-batches, schedule, bubbles. Private to
// ranks/reduce.
#pragma once

#include "ranks/reduce/reduce.h"
#include "ranks/reduce/waits.h"

namespace firelane::ranks {

// Ranks that exchange data with a neighbour in both directions, or in one without closing a ring, are stages; their
// order is that of the ranks. No stages: there is no pipeline, or it is not like that.
Pipeline find_pipeline(const JobReplay& replay, const Waits& waits);

// By rank (index): its stage, -1 for none.
std::vector<int32_t> stage_of_rank(const Intake& intake, const Pipeline& pipeline);

}  // namespace firelane::ranks
