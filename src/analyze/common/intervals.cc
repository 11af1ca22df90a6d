#include "analyze/common/intervals.h"

#include <algorithm>

namespace firelane::analyze {

IntervalSet::IntervalSet(std::vector<Interval> intervals) {
  const auto by_start = [](const Interval& a, const Interval& b) { return a.start_ns < b.start_ns; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), by_start)) {
    std::sort(intervals.begin(), intervals.end(), by_start);
  }
  for (const Interval& next : intervals) {
    if (next.end_ns <= next.start_ns) continue;
    if (!intervals_.empty() && next.start_ns <= intervals_.back().end_ns) {
      intervals_.back().end_ns = std::max(intervals_.back().end_ns, next.end_ns);
    } else {
      intervals_.push_back(next);
    }
  }
  before_.reserve(intervals_.size());
  int64_t total = 0;
  for (const Interval& interval : intervals_) before_.push_back(total += interval.end_ns - interval.start_ns);
}

int64_t IntervalSet::covered_until_ns(int64_t time_ns) const {
  const auto first_after = std::partition_point(intervals_.begin(), intervals_.end(),
                                                [&](const Interval& interval) { return interval.start_ns < time_ns; });
  if (first_after == intervals_.begin()) return 0;
  const auto index = static_cast<size_t>(first_after - intervals_.begin()) - 1;
  return before_[index] - std::max<int64_t>(0, intervals_[index].end_ns - time_ns);
}

int64_t IntervalSet::covered_ns(int64_t start_ns, int64_t end_ns) const {
  return end_ns <= start_ns ? 0 : covered_until_ns(end_ns) - covered_until_ns(start_ns);
}

int64_t IntervalSet::overlap_ns(const IntervalSet& other) const {
  int64_t total = 0;
  for (const Interval& interval : other.intervals_) total += covered_ns(interval.start_ns, interval.end_ns);
  return total;
}

}  // namespace firelane::analyze
