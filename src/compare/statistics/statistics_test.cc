#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "compare/statistics/change_points.h"
#include "compare/statistics/corrections.h"
#include "compare/statistics/judge.h"
#include "compare/statistics/permutation.h"
#include "compare/statistics/samples.h"
#include "compare/statistics/student.h"

namespace firelane::compare {
namespace {

using Values = std::vector<double>;

TEST(Samples, the_middle_of_an_even_row_is_the_mean_of_two) {
  EXPECT_EQ(median(Values{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(Values{5, 1, 3}), 3);
  EXPECT_EQ(median(Values{}), 0);
}

TEST(Samples, a_row_that_goes_up_and_down_in_waves_correlates_with_its_neighbors) {
  Values waves;
  Values flips;
  for (int i = 0; i < 100; ++i) {
    waves.push_back(std::sin(i / 5.0));
    flips.push_back(i % 2);
  }
  EXPECT_GT(autocorrelation(waves), 0.9);
  EXPECT_LT(autocorrelation(flips), -0.9);
  EXPECT_EQ(autocorrelation(Values{1, 1, 1, 1}), 0);
}

TEST(Samples, slow_first_steps_are_warm_up) {
  Values steps = {1500, 90, 40};
  for (int i = 0; i < 30; ++i) steps.push_back(20 + (i % 3) * 0.1);
  EXPECT_EQ(warm_up_steps(steps), 3u);
  EXPECT_NEAR(median(steady(steps)), 20.1, 1e-9);
}

TEST(Samples, fast_first_steps_of_a_cool_device_are_warm_up_too) {
  Values steps = {2018, 19, 16, 18, 18, 22};
  for (int i = 0; i < 60; ++i) steps.push_back(28.5 + (i % 5) * 0.05);
  EXPECT_GE(warm_up_steps(steps), 6u);
  EXPECT_LE(warm_up_steps(steps), 12u);
}

TEST(Samples, one_slow_step_in_the_middle_does_not_make_all_before_it_warm_up) {
  Values steps;
  for (int i = 0; i < 40; ++i) steps.push_back(i == 15 ? 400 : 20 + (i % 4) * 0.1);
  EXPECT_LE(warm_up_steps(steps), 2u);
}

TEST(Samples, the_range_of_a_median_holds_it_and_is_the_same_in_every_call) {
  Values steps;
  Random random(7);
  for (int i = 0; i < 50; ++i) steps.push_back(20 + static_cast<double>(random.index(100)) / 100);
  const Range range = median_range(steps);
  EXPECT_LE(range.low, median(steps));
  EXPECT_GE(range.high, median(steps));
  EXPECT_LT(range.high - range.low, 0.6);
  EXPECT_EQ(median_range(steps).low, range.low);
}

TEST(Student, agrees_with_printed_tables) {
  EXPECT_NEAR(student_quantile(0.975, 6), 2.447, 0.001);
  EXPECT_NEAR(student_quantile(0.8, 8), 0.889, 0.001);
  EXPECT_NEAR(student_quantile(0.025, 10), -2.228, 0.001);
  EXPECT_NEAR(student_cdf(0, 5), 0.5, 1e-12);
  EXPECT_NEAR(student_cdf(12.706, 1), 0.975, 1e-4);
}

TEST(Permutation, sides_apart_are_two_of_seventy_ways) {
  const PermutationTest test(Values{1, 2, 3, 4}, Values{11, 12, 13, 14});
  EXPECT_EQ(test.ways(), 70u);
  EXPECT_TRUE(test.exact());
  EXPECT_NEAR(test.p(), 2.0 / 70, 1e-12);
  EXPECT_EQ(test.p(), test.smallest_p());
}

TEST(Permutation, three_runs_a_side_never_reach_a_twentieth) {
  const PermutationTest test(Values{1, 1, 1}, Values{9, 9, 9});
  EXPECT_NEAR(test.p(), 0.1, 1e-12);
  EXPECT_TRUE(std::isinf(test.ratios(0.05).high));
}

TEST(Permutation, equal_values_are_not_different) {
  EXPECT_EQ(PermutationTest(Values{5, 5, 5, 5}, Values{5, 5, 5, 5}).p(), 1);
  // By hand: of the 6 ways, {1,4} and {2,3} have equal means, so that all are at least as far apart as they are.
  EXPECT_EQ(PermutationTest(Values{1, 4}, Values{2, 3}).p(), 1);
}

TEST(Permutation, the_range_holds_the_ratio_and_leaves_out_what_is_refuted) {
  const PermutationTest test(Values{100, 101, 99, 100.5}, Values{105, 106, 104, 105.5});
  const Range range = test.ratios(0.05);
  EXPECT_LT(range.low, 1.05);
  EXPECT_GT(range.high, 1.05);
  EXPECT_GT(range.low, 1.02);
  EXPECT_LT(range.high, 1.08);
}

TEST(Permutation, many_runs_are_drawn_and_give_the_same_answer_twice) {
  Values before;
  Values after;
  for (int i = 0; i < 20; ++i) {
    before.push_back(100 + i % 7);
    after.push_back(104 + i % 5);
  }
  const PermutationTest test(before, after);
  EXPECT_FALSE(test.exact());
  EXPECT_LT(test.p(), 0.001);
  EXPECT_EQ(test.p(), PermutationTest(before, after).p());
}

TEST(Corrections, holm_by_hand) {
  const std::vector<double> p = holm(Values{0.01, 0.04, 0.03, 0.5});
  EXPECT_NEAR(p[0], 0.04, 1e-12);
  EXPECT_NEAR(p[2], 0.09, 1e-12);
  EXPECT_NEAR(p[1], 0.09, 1e-12);  // 0.08, but never below the one before
  EXPECT_NEAR(p[3], 0.5, 1e-12);
}

TEST(Corrections, benjamini_hochberg_by_hand) {
  const std::vector<double> p = benjamini_hochberg(Values{0.01, 0.04, 0.03, 0.5});
  EXPECT_NEAR(p[0], 0.04, 1e-12);
  EXPECT_NEAR(p[1], 0.16 / 3, 1e-12);
  EXPECT_NEAR(p[2], 0.16 / 3, 1e-12);
  EXPECT_NEAR(p[3], 0.5, 1e-12);
}

TEST(ChangePoints, a_history_that_rose_twice_is_cut_twice) {
  Values history;
  Random random(11);
  const auto level = [&](double middle, int count) {
    for (int i = 0; i < count; ++i) history.push_back(middle + static_cast<double>(random.index(100)) / 100);
  };
  level(20, 12);
  level(23, 10);
  level(30, 8);
  const std::vector<ChangePoint> found = change_points(history);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].index, 12u);
  EXPECT_EQ(found[1].index, 22u);
  EXPECT_NEAR(found[1].before, 23.5, 0.5);
  EXPECT_NEAR(found[1].after, 30.5, 0.5);
}

TEST(ChangePoints, noise_and_a_single_slow_run_are_no_change) {
  Values history;
  Random random(5);
  for (int i = 0; i < 40; ++i) history.push_back(20 + static_cast<double>(random.index(100)) / 50);
  EXPECT_TRUE(change_points(history).empty());
  history[20] = 60;
  EXPECT_TRUE(change_points(history).empty());
  EXPECT_TRUE(change_points(Values{1, 2}).empty());
}

TEST(Judge, a_slowdown_of_five_percent_over_little_noise_is_found_with_four_runs) {
  const Judgement j = judge(Values{100, 100.3, 99.8, 100.1}, Values{105, 105.2, 104.9, 105.4});
  EXPECT_EQ(j.outcome, Outcome::kMore);
  EXPECT_EQ(j.method, Method::kPermutation);
  EXPECT_NEAR(j.ratio, 1.0508, 0.001);
  EXPECT_LT(j.range.low, j.ratio);
  EXPECT_GT(j.range.high, j.ratio);
  EXPECT_NEAR(j.smallest_change, 0.03, 1e-9);  // the threshold: the noise alone would allow less
}

TEST(Judge, a_sure_difference_that_is_too_small_to_matter_is_none) {
  const Judgement j = judge(Values{100, 100.1, 100.2, 100.3}, Values{101, 101.1, 101.2, 101.3});
  EXPECT_EQ(j.outcome, Outcome::kSame);
  EXPECT_LT(j.p, 0.05);
}

TEST(Judge, noise_that_hides_what_looks_like_a_difference_is_inconclusive_and_says_how_many_runs_it_takes) {
  const Judgement j = judge(Values{100, 112, 95, 104}, Values{108, 99, 118, 107});
  EXPECT_EQ(j.outcome, Outcome::kInconclusive);
  EXPECT_GT(j.smallest_change, 0.1);
  EXPECT_GT(j.runs_needed, 20);
}

TEST(Judge, half_of_what_could_be_found_takes_more_runs) {
  const Judgement j = judge(Values{100, 112, 95, 104}, Values{108, 99, 118, 107});
  EXPECT_GT(j.runs_for_half, 8);
  EXPECT_EQ(judge(Values{100}, Values{130}).runs_for_half, 0) << "nothing is known of the noise";
}

TEST(Judge, one_run_a_side_is_inconclusive_without_earlier_runs) {
  const Judgement j = judge(Values{100}, Values{130});
  EXPECT_EQ(j.outcome, Outcome::kInconclusive);
  EXPECT_EQ(j.method, Method::kNone);
  EXPECT_TRUE(std::isinf(j.smallest_change));
}

TEST(Judge, one_run_a_side_is_judged_by_the_noise_of_earlier_runs) {
  const JudgeOptions options{.noise = Noise{.relative = 0.01, .degrees = 9}};
  EXPECT_EQ(judge(Values{100}, Values{106}, options).outcome, Outcome::kMore);
  EXPECT_EQ(judge(Values{100}, Values{94}, options).outcome, Outcome::kLess);
  EXPECT_EQ(judge(Values{100}, Values{101}, options).outcome, Outcome::kSame);
  const JudgeOptions noisy{.noise = Noise{.relative = 0.05, .degrees = 9}};
  EXPECT_EQ(judge(Values{100}, Values{106}, noisy).outcome, Outcome::kInconclusive);
}

TEST(Judge, a_new_run_is_judged_by_the_runs_of_its_baseline) {
  const Values baseline = {100, 100.4, 99.7, 100.2, 99.9, 100.1};
  EXPECT_EQ(judge(baseline, Values{106}).outcome, Outcome::kMore);
  EXPECT_EQ(judge(baseline, Values{100.5}).outcome, Outcome::kSame);
}

TEST(Judge, counts_that_never_vary_need_no_luck) {
  const Judgement j = judge(Values{8, 8, 8, 8}, Values{9, 9, 9, 9});
  EXPECT_EQ(j.outcome, Outcome::kMore);
  EXPECT_EQ(judge(Values{0, 0, 0, 0}, Values{1, 1, 1, 1}).outcome, Outcome::kMore);
  EXPECT_EQ(judge(Values{0, 0}, Values{0, 0}, {.threshold = 0}).ratio, 1);
}

TEST(Noise, is_pooled_over_groups_of_equal_runs) {
  const std::vector<Values> groups = {{99, 101}, {198, 202}, {50}};
  const auto noise = noise_of(groups);
  ASSERT_TRUE(noise.has_value());
  EXPECT_NEAR(noise->relative, std::sqrt(0.0002), 1e-9);
  EXPECT_EQ(noise->degrees, 2);
  EXPECT_FALSE(noise_of(std::vector<Values>{{5}, {6}}).has_value());
}

TEST(Noise, runs_needed_grow_with_the_square_of_the_noise) {
  const int64_t little = runs_for(0.03, {.relative = 0.01, .degrees = 6}, {});
  const int64_t much = runs_for(0.03, {.relative = 0.04, .degrees = 6}, {});
  EXPECT_GE(little, 4);
  EXPECT_GT(much, 8 * little / 2);
}

}  // namespace
}  // namespace firelane::compare
