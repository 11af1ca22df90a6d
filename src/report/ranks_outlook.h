// The tables of a job's report that come from replaying it: what-ifs, the critical path across ranks, the pipeline,
// steps.
#pragma once

#include <string>

#include "ranks/reduce/reduce.h"
#include "report/table.h"

namespace firelane::report {

// One sentence each; "" when there is nothing to say.
std::string path_line(const ranks::Reduction& job);
std::string pipeline_line(const ranks::Reduction& job);

Table what_ifs_of(const ranks::Reduction& job);
Table types_of(const ranks::Reduction& job);
Table path_of(const ranks::Reduction& job);
Table stages_of(const ranks::Reduction& job);
Table by_step_of(const ranks::Reduction& job, size_t rows);  // of more than `rows`, those with the most waiting first

}  // namespace firelane::report
