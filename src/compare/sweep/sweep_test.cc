// Sweeps by hand: which point is best, where more stops paying, what would not fit, how many workers keep up.
#include "compare/sweep/sweep.h"

#include <gtest/gtest.h>

namespace firelane::compare {
namespace {

SweepPoint point(const std::string& value, int64_t step_us, int64_t samples, int64_t peak_bytes) {
  Run run;
  run.step_ns = step_us * 1000;
  run.samples = samples;
  run.has_memory = peak_bytes > 0;
  run.peak_bytes = peak_bytes;
  return {{value}, run, ""};
}

TEST(Sweep, the_knee_needs_the_least_memory_for_nearly_the_best_throughput) {
  const Sweep sweep{{"batch"},
                    {point("8", 1000, 8, 100),
                     point("16", 1200, 16, 200),
                     point("32", 2300, 32, 400),
                     {{"64"}, std::nullopt, "out of memory"}}};
  EXPECT_EQ(throughput_kind(sweep), Throughput::kSamples);
  const SweepBest best = find_best(sweep);
  EXPECT_EQ(best.best, 2u);  // 13,913 samples a second
  EXPECT_EQ(best.knee, 1u);  // 13,333: 96% of it, with half of the memory
}

TEST(Sweep, without_samples_the_shortest_step_is_best) {
  const Sweep sweep{{"workers"}, {point("0", 3000, 0, 0), point("2", 1000, 8, 0), point("4", 1010, 8, 0)}};
  EXPECT_EQ(throughput_kind(sweep), Throughput::kSteps);
  EXPECT_EQ(find_best(sweep).best, 1u);
  EXPECT_EQ(find_best(sweep).knee, 1u);
}

TEST(Sweep, of_failures_only_has_no_best_point) {
  const Sweep sweep{{"batch"}, {{{"64"}, std::nullopt, "out of memory"}}};
  EXPECT_EQ(find_best(sweep).best, std::nullopt);
  EXPECT_EQ(find_best(sweep).knee, std::nullopt);
}

TEST(Sweep, memory_is_predicted_from_two_points_and_never_from_one) {
  EXPECT_EQ(predict_memory({{8, 100}}, 32), std::nullopt);
  EXPECT_DOUBLE_EQ(predict_memory({{16, 150}, {8, 100}}, 32).value(), 250);
  EXPECT_EQ(predict_memory({{8, 100}, {16, 100}}, 32), std::nullopt);
}

TEST(Sweep, workers_follow_how_long_a_batch_takes_to_load) {
  EXPECT_EQ(workers_needed(30e6, 20e6, 0, 16), 2);  // 20 ms to load, 10 ms of its own
  EXPECT_EQ(workers_needed(15e6, 5e6, 2, 16), 3);   // two loaded in 15 ms each: 30 ms a batch for 10 ms of its own
  EXPECT_EQ(workers_needed(10e6, 10e6, 0, 16), 16);
  EXPECT_EQ(workers_needed(10e6, 0, 0, 16), 1);
}

}  // namespace
}  // namespace firelane::compare
