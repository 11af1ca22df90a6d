// How long a job would take were something different: all of it by replaying its collectives. Private to ranks/reduce.
#pragma once

#include "ranks/reduce/reduce.h"
#include "ranks/reduce/waits.h"

namespace firelane::ranks {

// Fills what_ifs, types, the S_w of ranks and the pipeline's M_S. Of a large job only the first collectives are
// replayed, and S_w is known for the ranks that made others wait the most. REQUIRES: scaling, stragglers and pipeline
// are there.
void add_what_ifs(const JobReplay& replay, const Waits& waits, Reduction& out);

}  // namespace firelane::ranks
