// Private to ranks/reduce.
#pragma once

#include <vector>

#include "ranks/reduce/reduce.h"

namespace firelane::ranks {

std::vector<GroupKind> group_kinds(const Intake& intake, int64_t world_size);

}  // namespace firelane::ranks
