// Ranks x steps as a picture: one value a cell, brought down to as many cells as can be seen.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ranks/reduce/studied_job.h"

namespace firelane::ranks {

enum class HeatValue : uint8_t {
  kStep,     // how long the step took
  kCompute,  // computing
  kWait,     // waiting for other ranks, hidden or not
  kLate,     // how long it kept others waiting, by its own work
  kMemory,   // most bytes allocated
};
inline constexpr size_t kHeatValueCount = 5;
std::string_view name_of(HeatValue value);  // "step", "compute", "wait", "late", "memory"

struct HeatWindow {
  size_t first_rank = 0;       // index of a rank that is there
  size_t end_rank = SIZE_MAX;  // behind the last
  size_t rows = 512;           // at most
  size_t columns = 512;        // at most
};

struct Heat {
  std::vector<int64_t> ranks;  // of each row: its first rank
  std::vector<int64_t> steps;  // of each column: number of its first step
  size_t ranks_a_row = 1;
  size_t steps_a_column = 1;
  size_t rank_count = 0;  // of all ranks, in the window or not
  size_t step_count = 0;
  std::vector<int64_t> cells;  // row by row; the largest of its ranks and steps; -1: not recorded
};

Heat heat_map(const StudiedJob& job, HeatValue value, const HeatWindow& window);

}  // namespace firelane::ranks
