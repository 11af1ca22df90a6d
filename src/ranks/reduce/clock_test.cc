#include "ranks/reduce/clock.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ranks/testing/generate.h"

namespace firelane::ranks {
namespace {

TEST(BoundLine, is_as_wide_as_the_points_leave_it) {
  // At both ends the line lies between 0 and 10: the estimate 4 may be off by 6.
  const LineBound bound = bound_line({{0, 0, 10}, {100, 0, 10}}, 4, 0, 1, 0, 100);
  EXPECT_TRUE(bound.feasible);
  EXPECT_NEAR(bound.bound, 6, 1e-6);
}

TEST(BoundLine, an_estimate_outside_is_moved_inside) {
  const LineBound bound = bound_line({{0, 0, 10}, {100, 0, 10}}, 40, 0, 1, 0, 100);
  EXPECT_NEAR(bound.a, 5, 1e-6);
  EXPECT_NEAR(bound.bound, 5, 1e-6);
}

TEST(BoundLine, points_that_contradict_each_other_are_said) {
  const LineBound bound = bound_line({{0, 8, INFINITY}, {0, -INFINITY, 2}}, 5, 0, 0, 0, 100);
  EXPECT_FALSE(bound.feasible);
  EXPECT_NEAR(bound.bound, 3, 1e-6);
}

TEST(Clocks, a_clock_that_jumps_is_not_called_consistent) {
  testing::Job job = testing::generate({.ranks = 4, .gpus_per_host = 2, .steps = 20, .sequence = true});
  for (size_t r = 2; r < 4; ++r) {
    PartCollectives& c = job.parts[r].collectives;
    for (size_t i = c.size() / 2; i < c.size(); ++i) {
      c.start_ns[i] += 30'000'000;
      c.end_ns[i] += 30'000'000;
    }
  }
  Intake intake;
  for (const Part& part : job.parts) intake.add(part);
  const Result<Reduction> reduced = reduce(intake);
  ASSERT_TRUE(reduced.ok());
  EXPECT_FALSE(reduced.value().clocks.domains[1].consistent);
}

TEST(Clocks, ranks_that_never_meet_have_no_common_time) {
  testing::Job job = testing::generate({.ranks = 4, .gpus_per_host = 2, .sequence = true});
  for (size_t r = 2; r < 4; ++r) job.parts[r].collectives = {};
  Intake intake;
  for (const Part& part : job.parts) intake.add(part);
  EXPECT_FALSE(reduce(intake).value().clocks.domains[1].known);
}

}  // namespace
}  // namespace firelane::ranks
