// Cost by hand: two steps of one second under a power that rises in a straight line.
#include "analyze/verdict/cost.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

TraceBuilder two_steps() {
  TraceBuilder trace;
  trace.step(1, {.start_us = 0, .end_us = 1e6}).step(2, {.start_us = 1e6, .end_us = 2e6});
  return trace;
}

TEST(Cost, energy_is_the_area_under_the_power) {
  const Model model = two_steps().counter("GPU 0 power (W)", 0, 100).counter("GPU 0 power (W)", 2e6, 300).build();
  const Cost cost = cost_of(model, {.grams_per_kwh = 360, .samples_per_step = 10});
  ASSERT_EQ(cost.steps.size(), 2u);
  EXPECT_NEAR(cost.steps[0].energy_joules, 150, 1e-9);
  EXPECT_NEAR(cost.steps[1].energy_joules, 250, 1e-9);
  EXPECT_NEAR(cost.energy_joules, 400, 1e-9);
  EXPECT_NEAR(cost.mean_power_watts, 200, 1e-9);
  EXPECT_NEAR(cost.joules_per_sample, 20, 1e-9);
  EXPECT_NEAR(cost.grams_per_step, 200 / 3.6e6 * 360, 1e-12);
}

// The counter was read at 0.5 and 1.5 s, when 1000 and 1300 J had been used: 300 W all along.
TEST(Cost, energy_that_was_counted_is_taken_and_the_devices_power_is_not_added) {
  const Model model = two_steps()
                          .counter("GPU 0 energy (J)", 0.5e6, 1000)
                          .counter("GPU 0 energy (J)", 1.0e6, 1100)
                          .counter("GPU 0 energy (J)", 1.5e6, 1300)
                          .counter("GPU 0 power (W)", 0, 100)
                          .counter("GPU 0 power (W)", 2e6, 100)
                          .counter("GPU 1 power (W)", 0, 10)
                          .counter("GPU 1 power (W)", 2e6, 10)
                          .build();
  const Cost cost = cost_of(model);
  EXPECT_EQ(cost.power_tracks, 2);
  EXPECT_NEAR(cost.steps[0].energy_joules, 0.5 * 300 + 100 + 10, 1e-9);
  EXPECT_NEAR(cost.steps[1].energy_joules, 200 + 0.5 * 300 + 10, 1e-9);
}

TEST(Cost, a_counter_that_was_read_twice_in_a_moment_or_does_not_move_leaves_the_power) {
  const Model model = two_steps()
                          .counter("GPU 0 energy (J)", 1.0e6, 1000)
                          .counter("GPU 0 energy (J)", 1.001e6, 1300)
                          .counter("GPU 0 power (W)", 0, 100)
                          .counter("GPU 0 power (W)", 2e6, 100)
                          .counter("GPU 1 energy (J)", 0, 5)
                          .counter("GPU 1 energy (J)", 2e6, 5)
                          .counter("(", 0, 5)
                          .build();
  EXPECT_NEAR(cost_of(model).energy_joules, 200, 1e-9);
}

TEST(Cost, price_is_time_by_the_hour) {
  const Model model = two_steps().build();
  const Cost cost = cost_of(model, {.price_per_hour = 3.6, .samples_per_step = 2, .steps_per_run = 1000});
  // But for the mark of each step, which takes less than a microsecond of it.
  EXPECT_NEAR(cost.price_per_step, 0.001, 1e-8);
  EXPECT_NEAR(cost.price_per_1000_samples, 0.5, 1e-5);
  EXPECT_NEAR(cost.price_per_run, 1, 1e-5);
  EXPECT_EQ(cost.energy_joules, -1);
  EXPECT_EQ(cost.grams_per_step, -1);
}

TEST(Cost, price_is_by_the_step_without_recording_where_it_is_known) {
  Model model = two_steps().build();
  model.timed_steps = {.number = {1, 2, 3, 4},
                       .disturbance = {StepDisturbance::kNone, StepDisturbance::kNone, StepDisturbance::kNone,
                                       StepDisturbance::kRecorded},
                       .start_ns = {0, 0, 0, 0},
                       .duration_ns = {500'000'000, 500'000'000, 500'000'000, 1'000'000'000}};
  const Cost cost = cost_of(model, {.price_per_hour = 3.6});
  EXPECT_EQ(cost.usual_ns, 500'000'000);
  EXPECT_EQ(cost.usual_recorded_ns, 1'000'000'000);
  EXPECT_NEAR(cost.price_per_step, 3.6 * static_cast<double>(cost.step_ns) / 3.6e12, 1e-12);
}

TEST(Cost, milliwatts_and_other_counters_are_told_apart) {
  const Model model = two_steps()
                          .counter("power mW", 0, 100'000)
                          .counter("power mW", 2e6, 100'000)
                          .counter("temperature", 0, 70)
                          .counter("temperature", 2e6, 70)
                          .build();
  const Cost cost = cost_of(model);
  EXPECT_EQ(cost.power_tracks, 1);
  EXPECT_NEAR(cost.energy_joules, 200, 1e-9);
}

// The host needs 0.1 s for a step, the device 1 s: ten watt-seconds a step, although the host is done after 0.3 s.
TEST(Cost, energy_follows_the_device_where_the_host_runs_ahead) {
  TraceBuilder trace;
  for (int i = 0; i < 3; ++i) {
    const double at = 1e5 * i;
    trace.step(i, {.start_us = at, .end_us = at + 1e5});
    trace.call("cudaLaunchKernel", {.start_us = at, .end_us = at + 10, .correlation = i + 1});
    trace.kernel("gemm", {.start_us = 1e6 * i, .end_us = 1e6 * (i + 1), .correlation = i + 1});
  }
  const Model model = trace.counter("GPU 0 power (W)", 0, 10).counter("GPU 0 power (W)", 3e6, 10).build();
  const Cost cost = cost_of(model);
  ASSERT_EQ(cost.steps.size(), 3u);
  for (const StepCost& step : cost.steps) EXPECT_NEAR(step.energy_joules, 10, 1e-6);
  EXPECT_NEAR(cost.energy_joules, 30, 1e-6);
  EXPECT_NEAR(cost.mean_power_watts, 10, 1e-6);
  EXPECT_EQ(cost.usual_recorded_ns, 1'000'000'000);
}

}  // namespace

TEST(Cost, one_reading_of_power_gives_no_energy_but_is_counted) {
  const Cost cost = cost_of(two_steps().counter("GPU 0 power (W)", 1e6, 100).build(), {});
  EXPECT_EQ(cost.power_tracks, 0);
  EXPECT_EQ(cost.power_readings, 1);
  EXPECT_EQ(cost.energy_joules, -1);
}

}  // namespace firelane::analyze
