#include "analyze/steps/steps.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

TEST(StepTable, busy_and_idle_time_add_up_to_the_step) {
  const Model model = TraceBuilder()
                          .step(3, {.start_us = 0, .end_us = 100})
                          .step(4, {.start_us = 100, .end_us = 160})
                          .kernel("a", {.start_us = 10, .end_us = 40})
                          .kernel("b", {.start_us = 30, .end_us = 50, .stream = 8})  // beside a
                          .kernel("c", {.start_us = 90, .end_us = 120})              // of step 3: it ends when c does
                          .build();
  const StepTable table = step_table(model);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].number, 3);
  EXPECT_EQ(table.rows[0].duration_ns, 120'000);
  EXPECT_EQ(table.rows[0].device_busy_ns, 70'000);  // 10..50 and 90..120
  EXPECT_EQ(table.rows[0].device_idle_ns, 50'000);
  EXPECT_EQ(table.rows[1].device_busy_ns, 0);
  EXPECT_EQ(table.rows[1].device_idle_ns, 40'000);  // 120..160
  EXPECT_EQ(table.rows[0].kernels, 3);              // c starts in step 3
  EXPECT_EQ(table.rows[1].kernels, 0);
  EXPECT_EQ(table.outside.device_busy_ns, 0);
}

TEST(StepTable, what_starts_in_no_step_is_outside) {
  const Model model = TraceBuilder()
                          .op("aten::warm_up", {.start_us = 0, .end_us = 5})
                          .step(0, {.start_us = 10, .end_us = 20})
                          .op("aten::mm", {.start_us = 12, .end_us = 15})
                          .op("aten::mm", {.start_us = 14, .end_us = 15, .thread = 2})
                          .kernel("late", {.start_us = 20, .end_us = 27})
                          .copy("Memcpy", {.start_us = 11, .end_us = 12})
                          .build();
  const StepTable table = step_table(model);
  EXPECT_EQ(table.rows[0].ops, 2);
  EXPECT_EQ(table.rows[0].copies_and_sets, 1);
  EXPECT_EQ(table.rows[0].kernels, 0);  // the end of a window is not in it
  EXPECT_EQ(table.outside.ops, 1);
  EXPECT_EQ(table.outside.kernels, 1);
  EXPECT_EQ(table.outside.device_busy_ns, 7'000);
}

TEST(StepTable, median_of_an_even_number_of_steps_is_the_mean_of_the_middle_two) {
  TraceBuilder builder;
  builder.step(0, {.start_us = 0, .end_us = 10}).step(1, {.start_us = 10, .end_us = 40});
  builder.step(2, {.start_us = 40, .end_us = 60}).step(3, {.start_us = 60, .end_us = 160});
  const StepTable table = step_table(builder.build());
  EXPECT_EQ(table.median_ns, 25'000);  // of 10, 20, 30, 100
  EXPECT_EQ(table.min_ns, 10'000);
  EXPECT_EQ(table.max_ns, 100'000);
  EXPECT_FALSE(table.overlapping);
}

TEST(StepTable, without_steps_everything_is_outside) {
  const StepTable table = step_table(TraceBuilder().kernel("k", {.start_us = 0, .end_us = 3}).build());
  EXPECT_TRUE(table.rows.empty());
  EXPECT_EQ(table.outside.kernels, 1);
  EXPECT_EQ(table.outside.device_busy_ns, 3'000);
  EXPECT_EQ(table.median_ns, kNoNumber);
}

TEST(StepTable, steps_of_two_threads_may_overlap) {
  const Model model = TraceBuilder()
                          .step(0, {.start_us = 0, .end_us = 100})
                          .step(1, {.start_us = 50, .end_us = 60, .thread = 2})
                          .kernel("k", {.start_us = 55, .end_us = 58})
                          .kernel("k", {.start_us = 70, .end_us = 80})
                          .build();
  const StepTable table = step_table(model);
  EXPECT_TRUE(table.overlapping);
  EXPECT_EQ(table.rows[1].kernels, 1);  // the step that began last
  EXPECT_EQ(table.rows[0].kernels, 1);
  EXPECT_EQ(table.outside.device_busy_ns, 0);
}

TEST(StepTable, optimizer_steps_are_steps_where_none_are_marked) {
  TraceBuilder builder;
  for (int i = 0; i < 5; ++i) {  // each ends one: four steps, the first of 300 us, then 100, 100, 100
    const double end = i == 0 ? 100 : 300 + 100.0 * i;
    builder.op("aten::mm", {.start_us = end - 60, .end_us = end - 30});
    builder.annotation("Optimizer.step#SGD.step", {.start_us = end - 20, .end_us = end});
  }
  const StepTable table = step_table(builder.build());
  EXPECT_EQ(table.source, StepSource::kOptimizer);
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(table.rows[0].duration_ns, 300'000);
  EXPECT_TRUE(table.rows[0].warm_up);
  EXPECT_FALSE(table.rows[1].warm_up);
  EXPECT_EQ(table.usual_ns, 100'000);
  EXPECT_EQ(table.spread_ns, 0);
  EXPECT_EQ(table.rows[1].ops, 1);
}

TEST(StepTable, a_step_far_from_the_others_is_an_outlier) {
  TraceBuilder builder;
  const double starts[] = {0, 100, 202, 301, 900, 1001};
  for (int i = 0; i < 5; ++i) builder.step(i, {.start_us = starts[i], .end_us = starts[i + 1]});
  const StepTable table = step_table(builder.build());
  EXPECT_EQ(table.source, StepSource::kMarked);
  EXPECT_TRUE(table.rows[3].outlier);  // 599 us where 101 are usual
  EXPECT_FALSE(table.rows[2].outlier);
  EXPECT_EQ(table.usual_ns, 101'000);
}

}  // namespace
}  // namespace firelane::analyze
