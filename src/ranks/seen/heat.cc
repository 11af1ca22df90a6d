#include "ranks/seen/heat.h"

#include <algorithm>

namespace firelane::ranks {

namespace {

int64_t value_of(const StudiedJob& job, uint32_t rank, size_t step, HeatValue value) {
  const PartSteps& steps = job.intake.ranks[rank].part.steps;
  switch (value) {
    case HeatValue::kStep: return steps.end_ns[step] - steps.start_ns[step];
    case HeatValue::kCompute: return steps.compute_ns[step];
    case HeatValue::kWait: return job.waits.ranks[rank].wait_by_step[step];
    case HeatValue::kLate: return job.waits.ranks[rank].late_by_step[step];
    case HeatValue::kMemory: return steps.peak_bytes[step];
  }
  return -1;
}

}  // namespace

std::string_view name_of(HeatValue value) {
  constexpr std::string_view kNames[kHeatValueCount] = {"step", "compute", "wait", "late", "memory"};
  return kNames[static_cast<size_t>(value)];
}

Heat heat_map(const StudiedJob& job, HeatValue value, const HeatWindow& window) {
  const std::vector<RankRows>& ranks = job.intake.ranks;
  std::vector<int64_t> numbers;
  for (const RankRows& rank : ranks) {
    const std::vector<int64_t>& own = rank.part.steps.number;
    numbers.insert(numbers.end(), own.begin(), own.end());
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const size_t end = std::min(window.end_rank, ranks.size());
  const size_t first = std::min(window.first_rank, end);
  const auto fold = [](size_t count, size_t most) {
    return std::max<size_t>(1, (count + std::max<size_t>(1, most) - 1) / std::max<size_t>(1, most));
  };
  Heat out{.ranks_a_row = fold(end - first, window.rows),
           .steps_a_column = fold(numbers.size(), window.columns),
           .rank_count = ranks.size(),
           .step_count = numbers.size()};
  for (size_t r = first; r < end; r += out.ranks_a_row) out.ranks.push_back(ranks[r].part.rank);
  for (size_t s = 0; s < numbers.size(); s += out.steps_a_column) out.steps.push_back(numbers[s]);
  out.cells.assign(out.ranks.size() * out.steps.size(), -1);
  for (size_t r = first; r < end; ++r) {
    const PartSteps& steps = ranks[r].part.steps;
    int64_t* const row = out.cells.data() + (r - first) / out.ranks_a_row * out.steps.size();
    for (size_t s = 0; s < steps.size(); ++s) {
      const auto at =
          static_cast<size_t>(std::lower_bound(numbers.begin(), numbers.end(), steps.number[s]) - numbers.begin());
      int64_t& cell = row[at / out.steps_a_column];
      cell = std::max(cell, value_of(job, static_cast<uint32_t>(r), s, value));
    }
  }
  return out;
}

}  // namespace firelane::ranks
