#include "analyze/steps/true_steps.h"

#include <gtest/gtest.h>

#include <vector>

#include "model/model.h"

namespace firelane::analyze {
namespace {

constexpr int64_t kNotByDevice = kNoNumber;
struct Step {
  StepDisturbance disturbance;
  int64_t host_us;
  int64_t device_us = kNotByDevice;
};
constexpr StepDisturbance kNone = StepDisturbance::kNone;
constexpr StepDisturbance kWarmUp = StepDisturbance::kWarmup;
constexpr StepDisturbance kRecorded = StepDisturbance::kRecorded;

std::vector<Row> rows_of(const std::vector<Step>& steps) {
  TimedSteps timed;
  for (const Step& step : steps) timed.disturbance.push_back(step.disturbance);
  timed.number.assign(steps.size(), 0);
  timed.start_ns.assign(steps.size(), 0);
  timed.duration_ns.assign(steps.size(), 0);
  timed.device_ns.assign(steps.size(), kNoNumber);
  for (size_t i = 0; i < steps.size(); ++i) {
    timed.duration_ns[i] = steps[i].host_us * 1000;
    if (steps[i].device_us != kNotByDevice) timed.device_ns[i] = steps[i].device_us * 1000;
  }
  return true_steps(timed);
}

// Steps of 8.5 ms and more before the recording made a true step of 3.0 ms one of 5.4.
TEST(TrueSteps, warm_up_before_the_recorded_steps_was_taken_for_the_true_step) {
  EXPECT_EQ(rows_of({{kNone, 90'000},
                     {kNone, 8'500},
                     {kNone, 21'000},
                     {kNone, 8'600},
                     {kWarmUp, 6'000},
                     {kRecorded, 7'000},
                     {kNone, 3'000},
                     {kNone, 3'100},
                     {kNone, 2'900}}),
            (std::vector<Row>{6, 7, 8}));
}

TEST(TrueSteps, one_step_before_as_fast_as_those_after_shows_that_they_are_no_warm_up) {
  // Twice the slowest after: 6,200 us.
  EXPECT_EQ(
      rows_of({{kNone, 8'000}, {kNone, 6'200}, {kRecorded, 7'000}, {kNone, 3'000}, {kNone, 3'100}, {kNone, 2'900}}),
      (std::vector<Row>{0, 1, 3, 4, 5}));
  EXPECT_EQ(
      rows_of({{kNone, 8'000}, {kNone, 6'201}, {kRecorded, 7'000}, {kNone, 3'000}, {kNone, 3'100}, {kNone, 2'900}}),
      (std::vector<Row>{3, 4, 5}));
}

TEST(TrueSteps, a_slow_step_after_the_recording_is_no_warm_up_and_keeps_those_before) {
  EXPECT_EQ(rows_of({{kNone, 9'000}, {kRecorded, 7'000}, {kNone, 3'000}, {kNone, 9'000}, {kNone, 3'000}}),
            (std::vector<Row>{0, 2, 3, 4}));
}

TEST(TrueSteps, two_steps_after_the_recording_are_too_few_to_tell) {
  EXPECT_EQ(rows_of({{kNone, 9'000}, {kNone, 9'000}, {kRecorded, 7'000}, {kNone, 3'000}, {kNone, 3'000}}),
            (std::vector<Row>{0, 1, 3, 4}));
}

// The host runs ahead: its own time says nothing about a step of the device.
TEST(TrueSteps, the_slower_of_host_and_device_decides) {
  EXPECT_EQ(rows_of({{kNone, 7'000, 10'000},
                     {kRecorded, 7'000},
                     {kNone, 1'000, 5'000},
                     {kNone, 1'000, 5'000},
                     {kNone, 1'000, 5'000}}),
            (std::vector<Row>{0, 2, 3, 4}));
  EXPECT_EQ(rows_of({{kNone, 7'000, 10'001},
                     {kRecorded, 7'000},
                     {kNone, 1'000, 5'000},
                     {kNone, 1'000, 5'000},
                     {kNone, 1'000, 5'000}}),
            (std::vector<Row>{2, 3, 4}));
}

TEST(TrueSteps, where_the_device_timed_steps_before_it_has_to_have_timed_enough_after) {
  EXPECT_EQ(
      rows_of(
          {{kNone, 5'000, 11'000}, {kRecorded, 7'000}, {kNone, 3'000, 3'000}, {kNone, 3'000, 3'000}, {kNone, 3'000}}),
      (std::vector<Row>{0, 2, 3, 4}));
}

TEST(TrueSteps, without_recorded_steps_all_undisturbed_ones_count) {
  EXPECT_EQ(rows_of({{kNone, 9'000}, {kWarmUp, 5'000}, {kNone, 3'000}, {kNone, 3'000}, {kNone, 3'000}}),
            (std::vector<Row>{0, 2, 3, 4}));
  EXPECT_EQ(rows_of({}), std::vector<Row>{});
}

}  // namespace
}  // namespace firelane::analyze
