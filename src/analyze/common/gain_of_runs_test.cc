#include "analyze/common/gain_of_runs.h"

#include <gtest/gtest.h>

namespace firelane::analyze {
namespace {

TEST(GainOfRuns, a_difference_far_above_the_spread_is_a_gain) {
  const RunGain gain = gain_of_runs({100, 102, 104}, {50, 51, 52});
  EXPECT_DOUBLE_EQ(gain.saved_ns, 51);
  // Pooled variance (8 + 2) / 4, times 2/3; Student's t for 4 degrees of freedom is 2.776.
  EXPECT_NEAR(gain.low_ns, 51 - 3.58, 0.01);
  EXPECT_NEAR(gain.high_ns, 51 + 3.58, 0.01);
  EXPECT_TRUE(gain.is_gain());
  EXPECT_TRUE(gain_of_runs({50, 51, 52}, {100, 102, 104}).is_loss());
}

TEST(GainOfRuns, a_difference_within_the_spread_is_none) {
  const RunGain gain = gain_of_runs({100, 120, 90}, {95, 99, 110});
  EXPECT_FALSE(gain.is_gain());
  EXPECT_FALSE(gain.is_loss());
}

TEST(GainOfRuns, one_run_a_side_has_no_range) {
  const RunGain gain = gain_of_runs({100}, {50});
  EXPECT_FALSE(gain.has_range);
  EXPECT_FALSE(gain.is_gain());
}

}  // namespace
}  // namespace firelane::analyze
