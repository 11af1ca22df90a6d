// Sets of moments: the union of many intervals, for "some stream was busy".
//
// An interval is [start, end). The union of overlapping slices counts each moment once,
// which is what busy time means; sums of durations count it once per slice.
#pragma once

#include <cstdint>
#include <vector>

namespace firelane::analyze {

struct Interval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  bool operator==(const Interval&) const = default;
};

class IntervalSet {
 public:
  IntervalSet() = default;
  // In any order, overlapping or not; empty ones add nothing.
  explicit IntervalSet(std::vector<Interval> intervals);

  // Sorted, disjoint, not touching.
  const std::vector<Interval>& intervals() const { return intervals_; }
  int64_t total_ns() const { return before_.empty() ? 0 : before_.back(); }
  // The part inside of [start, end). O(log n).
  int64_t covered_ns(int64_t start_ns, int64_t end_ns) const;
  // The part inside of `other`.
  int64_t overlap_ns(const IntervalSet& other) const;

 private:
  int64_t covered_until_ns(int64_t time_ns) const;

  std::vector<Interval> intervals_;
  std::vector<int64_t> before_;  // before_[i]: length of the first i + 1 intervals
};

}  // namespace firelane::analyze
