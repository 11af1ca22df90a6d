#include "analyze/steps/growth.h"

#include <gtest/gtest.h>

#include <functional>

namespace firelane::analyze {
namespace {

Growth growth_of(int64_t count, const std::function<int64_t(int64_t)>& value) {
  std::vector<StepPoint> points;
  for (int64_t i = 0; i < count; ++i) points.push_back({.number = 10 + i, .value = value(i)});
  return find_growth(points);
}

int64_t noise(int64_t i) { return (i * 7919) % 21 - 10; }  // -10..10

TEST(Growth, a_step_that_appends_grows_linearly) {
  const Growth growth = growth_of(30, [](int64_t i) { return 1000 + 20 * i + noise(i); });
  EXPECT_EQ(growth.law, GrowthLaw::kLinear);
  EXPECT_EQ(growth.first_number, 10);
  EXPECT_EQ(growth.last_number, 39);
  EXPECT_NEAR(static_cast<double>(growth.first), 1000, 15);
  EXPECT_NEAR(static_cast<double>(growth.last), 1580, 15);
  EXPECT_NEAR(static_cast<double>(growth.slope_per_step), 20, 1);
}

TEST(Growth, a_step_that_appends_to_what_it_reads_again_grows_with_the_square) {
  EXPECT_EQ(growth_of(30, [](int64_t i) { return 1000 + 4 * i * i + noise(i); }).law, GrowthLaw::kQuadratic);
}

TEST(Growth, noise_single_slow_steps_and_other_lengths_are_none) {
  EXPECT_EQ(growth_of(30, [](int64_t i) { return 1000 + 20 * noise(i); }).law, GrowthLaw::kNone);
  EXPECT_EQ(growth_of(30, [](int64_t i) { return i == 29 ? 9000 : 1000 + noise(i); }).law, GrowthLaw::kNone);
  EXPECT_EQ(growth_of(30, [](int64_t i) { return i < 15 ? 1000 + noise(i) : 2000 + noise(i); }).law, GrowthLaw::kNone)
      << "two levels";
  EXPECT_EQ(growth_of(30, [](int64_t i) { return 1000 + i; }).law, GrowthLaw::kNone) << "3%";
  EXPECT_EQ(growth_of(7, [](int64_t i) { return 1000 + 100 * i; }).law, GrowthLaw::kNone) << "too few to tell";
  EXPECT_EQ(growth_of(30, [](int64_t i) { return 2000 - 20 * i; }).law, GrowthLaw::kNone);
}

TEST(Growth, is_seen_through_the_noise_of_a_shared_machine) {
  const auto noisy = [](int64_t i) { return 1000 + 40 * i + 15 * noise(i) + (i % 9 == 4 ? 3000 : 0); };
  EXPECT_EQ(growth_of(40, noisy).law, GrowthLaw::kLinear);
}

TEST(Growth, thousands_of_steps_are_thinned_out) {
  EXPECT_EQ(growth_of(12'000, [](int64_t i) { return 1000 + i; }).law, GrowthLaw::kLinear);
}

}  // namespace
}  // namespace firelane::analyze
