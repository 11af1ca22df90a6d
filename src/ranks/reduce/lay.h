// Lays the rows of ranks with the same clock along each other, without sequence numbers. Private to ranks/reduce.
#pragma once

#include <vector>

#include "ranks/reduce/islands.h"

namespace firelane::ranks {

// The rows of these groups: of each those of every clock by themselves.
std::vector<Laid> lay_by_clock(const Intake& intake, const std::vector<uint32_t>& groups);

}  // namespace firelane::ranks
