#include "analyze/steps/true_steps.h"

#include <algorithm>

namespace firelane::analyze {

namespace {

// The fastest step before the recording, of the slowest after it. Less is no warm-up: of the recordings that are kept
// in tests/data/library, seven are of hosts that became 1.25 to 1.75 times as fast while recorded, and in all seven the
// steps before were the usual ones.
constexpr double kSlowerThanAll = 2;
// As many as a true step needs: what is left must give one.
constexpr std::ptrdiff_t kLeastAfter = 3;

bool by_device(const TimedSteps& timed, Row row) {
  return row < timed.device_ns.size() && timed.device_ns[row] != kNoNumber;
}

// Either of host and device may run ahead of the other: the slower one took as long as the step.
int64_t length_ns(const TimedSteps& timed, Row row) {
  return by_device(timed, row) ? std::max<int64_t>(timed.duration_ns[row], timed.device_ns[row])
                               : timed.duration_ns[row];
}

}  // namespace

std::vector<Row> true_steps(const TimedSteps& timed) {
  std::vector<Row> rows;
  Row recorded = kNoRow;  // the first
  for (Row row = 0; row < timed.size(); ++row) {
    const StepDisturbance disturbance = timed.disturbance[row];
    if (disturbance == StepDisturbance::kNone) rows.push_back(row);
    const bool is_recorded = disturbance == StepDisturbance::kRecorded || disturbance == StepDisturbance::kLight;
    if (is_recorded && recorded == kNoRow) recorded = row;
  }
  const auto after = std::lower_bound(rows.begin(), rows.end(), recorded);
  const auto on_device = [&](Row row) { return by_device(timed, row); };
  const bool needs_device = std::any_of(rows.begin(), after, on_device);
  const std::ptrdiff_t enough = needs_device ? std::count_if(after, rows.end(), on_device) : rows.end() - after;
  if (after == rows.begin() || enough < kLeastAfter) return rows;
  const auto shorter = [&](Row a, Row b) { return length_ns(timed, a) < length_ns(timed, b); };
  const auto fastest_before = static_cast<double>(length_ns(timed, *std::min_element(rows.begin(), after, shorter)));
  const auto slowest_after = static_cast<double>(length_ns(timed, *std::max_element(after, rows.end(), shorter)));
  if (fastest_before > kSlowerThanAll * slowest_after) rows.erase(rows.begin(), after);
  return rows;
}

}  // namespace firelane::analyze
