#include "analyze/common/intervals.h"

#include <gtest/gtest.h>

namespace firelane::analyze {
namespace {

TEST(IntervalSet, merges_overlapping_touching_and_unsorted_intervals) {
  const IntervalSet set({{30, 40}, {0, 10}, {5, 12}, {12, 15}, {20, 20}});
  EXPECT_EQ(set.intervals(), (std::vector<Interval>{{0, 15}, {30, 40}}));
  EXPECT_EQ(set.total_ns(), 25);
}

TEST(IntervalSet, covered_time_is_clipped_to_the_window) {
  const IntervalSet set({{10, 20}, {30, 40}});
  EXPECT_EQ(set.covered_ns(0, 100), 20);
  EXPECT_EQ(set.covered_ns(15, 35), 10);
  EXPECT_EQ(set.covered_ns(12, 14), 2);
  EXPECT_EQ(set.covered_ns(20, 30), 0);
  EXPECT_EQ(set.covered_ns(35, 15), 0);
  EXPECT_EQ(IntervalSet().covered_ns(0, 5), 0);
}

TEST(IntervalSet, overlap_of_two_sets_is_symmetric) {
  const IntervalSet a({{0, 10}, {20, 30}});
  const IntervalSet b({{5, 25}});
  EXPECT_EQ(a.overlap_ns(b), 10);
  EXPECT_EQ(b.overlap_ns(a), 10);
}

}  // namespace
}  // namespace firelane::analyze
