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

TEST(BoundLine, an_estimate_outside_moves_to_the_nearest_line_and_not_to_the_middle) {
  const LineBound bound = bound_line({{0, 0, 10}, {100, 0, 10}}, 10.5, 0, 1, 0, 100);
  EXPECT_NEAR(bound.a, 10, 1e-6);
  EXPECT_NEAR(bound.b, 0, 1e-6);
  EXPECT_NEAR(bound.bound, 10, 1e-6);
  // Where few points leave nearly every line, the middle of them is anywhere.
  EXPECT_NEAR(bound_line({{0, -1e6, 10}}, 10.5, 0, 1, 0, 100).a, 10, 1e-6);
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

TEST(Clocks, a_rank_with_few_collectives_is_not_given_the_drift_of_their_noise) {
  for (const uint64_t seed : {3u, 6u, 9u, 12u}) {
    const testing::Score s =
        score(testing::generate({.seed = seed, .ranks = 16, .hosts_named = false, .cut_rows = 20}));
    EXPECT_LT(s.worst_clock_ns, 5'000) << seed;
    EXPECT_EQ(s.outside_bound, 0) << seed;
  }
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
