// Work across the edges of a recording: what of it counts, in every analysis the same, and that sums still add up.
#include "analyze/device/device_work.h"

#include <gtest/gtest.h>

#include <numeric>

#include "analyze/compute/roofline.h"
#include "analyze/device/kernels.h"
#include "analyze/modules/modules.h"
#include "analyze/ops/ops.h"
#include "analyze/steps/steps.h"
#include "analyze/testing.h"
#include "analyze/trace/lanes.h"
#include "analyze/verdict/cost.h"
#include "analyze/verdict/study.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// Recorded from 60 to 160 us of the trace, which begins with the kernel that ran already. "late" is launched by another
// thread while stop() waits for "tail".
TraceBuilder edges() {
  TraceBuilder builder;
  builder.device_window(60, 160)
      .kernel("running", {.start_us = 0, .end_us = 90})
      .op("aten::mm", {.start_us = 62, .end_us = 100})
      .call("cudaLaunchKernel", {.start_us = 70, .end_us = 75, .correlation = 1})
      .kernel("gemm", {.start_us = 90, .end_us = 140, .correlation = 1})
      .op("aten::add", {.start_us = 110, .end_us = 155})
      .call("cudaLaunchKernel", {.start_us = 120, .end_us = 125, .correlation = 2})
      .kernel("tail", {.start_us = 150, .end_us = 220, .correlation = 2})
      .call("cudaLaunchKernel", {.start_us = 180, .end_us = 185, .thread = 2, .correlation = 3})
      .kernel("late", {.start_us = 220, .end_us = 260, .correlation = 3});
  return builder;
}

Row row_named(const Model& model, std::string_view name) {
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    if (model.text(model.device_slices.name[row]) == name) return row;
  }
  return kNoRow;
}

TEST(DeviceWork, what_ran_already_counts_from_the_recordings_start_and_what_it_launched_to_the_end) {
  const Model model = edges().build();
  EXPECT_EQ(counted_part(model, row_named(model, "running")), (Interval{60'000, 90'000}));
  EXPECT_EQ(counted_part(model, row_named(model, "gemm")), (Interval{90'000, 140'000}));
  EXPECT_EQ(counted_part(model, row_named(model, "tail")), (Interval{150'000, 220'000}));
  EXPECT_TRUE(is_counted(model, row_named(model, "tail")));
  EXPECT_FALSE(is_counted(model, row_named(model, "late"))) << "launched after stop()";
  EXPECT_EQ(counted_span(model), (Interval{60'000, 220'000}));
  EXPECT_EQ(device_busy(model).total_ns(), 150'000);
}

TEST(DeviceWork, without_recorded_calls_all_that_the_device_did_counts) {
  const Model model = TraceBuilder()
                          .device_window(10, 20)
                          .kernel("early", {.start_us = 0, .end_us = 12})
                          .kernel("queued", {.start_us = 30, .end_us = 40})
                          .build();
  EXPECT_EQ(device_busy(model).total_ns(), 12'000);
}

TEST(DeviceWork, a_recording_that_does_not_say_its_edges_counts_everything) {
  const Model model =
      TraceBuilder().kernel("a", {.start_us = 0, .end_us = 12}).kernel("b", {.start_us = 30, .end_us = 40}).build();
  EXPECT_EQ(device_busy(model).total_ns(), 22'000);
  EXPECT_EQ(counted_span(model), (Interval{0, 40'000}));
}

TEST(DeviceWork, tables_of_kernels_ops_lanes_and_modules_count_the_same) {
  const Model model = edges().build();
  const KernelTable kernels = kernel_table(model);
  EXPECT_EQ(kernels.calls, 3);
  EXPECT_EQ(kernels.work_ns, 150'000);
  EXPECT_EQ(kernels.busy_ns, 150'000);
  const OpsResult by_op = ops(model);
  EXPECT_EQ(row_of(by_op, "running", true).self_device_time_total_ns, 30'000);
  EXPECT_EQ(row_of(by_op, "aten::add").device_time_total_ns, 70'000) << "as torch: stop() waited for it";
  int64_t busy_ns = 0;
  for (const LaneRow& lane : lane_table(model)) {
    if (model.lanes.kind[static_cast<size_t>(lane.lane)] == LaneKind::kStream) busy_ns += lane.busy_ns;
  }
  EXPECT_EQ(busy_ns, 150'000);
  EXPECT_EQ(module_table(model).work_ns, 150'000);
  EXPECT_EQ(roofline_of(model, steps_of(model)).work_ns, 150'000);
  EXPECT_EQ(roofline_of(model, steps_of(model)).whole.duration_ns, 160'000);
  EXPECT_EQ(cost_of(model).window_ns, 160'000);
}

TEST(DeviceWork, the_shortest_call_of_a_kernel_is_not_one_that_the_recording_cut) {
  const Model model = TraceBuilder()
                          .device_window(60, 200)
                          .kernel("gemm", {.start_us = 0, .end_us = 61})
                          .kernel("gemm", {.start_us = 70, .end_us = 100})
                          .kernel("gemm", {.start_us = 100, .end_us = 140})
                          .build();
  const KernelTable table = kernel_table(model);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].total_ns, 71'000);
  EXPECT_EQ(table.rows[0].min_ns, 30'000);
}

TEST(DeviceWork, a_breakdown_across_the_edges_adds_up) {
  const Model model = edges().build();
  const Study s = study(model);
  const BreakdownRow& total = s.breakdown.total;
  EXPECT_EQ(total.start_ns, 90'000) << "the device was busy with what was before until then";
  EXPECT_EQ(total.duration_ns, 130'000);
  EXPECT_EQ(total.busy_ns(), 120'000);
  EXPECT_EQ(std::accumulate(total.idle.begin(), total.idle.end(), int64_t{0}), 10'000);
}

TEST(DeviceWork, busy_time_of_steps_and_of_the_rest_adds_up_to_what_counts) {
  TraceBuilder builder = edges();
  builder.step(0, {.start_us = 61, .end_us = 100}).step(1, {.start_us = 100, .end_us = 158});
  const StepTable table = step_table(builder.build());
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].device_busy_ns, 50'000);  // gemm: the step begins when "running" has ended
  EXPECT_EQ(table.rows[1].device_busy_ns, 70'000);  // tail, whole
  EXPECT_EQ(table.outside.device_busy_ns, 150'000 - 50'000 - 70'000);
  EXPECT_EQ(table.rows[0].kernels + table.rows[1].kernels + table.outside.kernels, 3);
}

}  // namespace
}  // namespace firelane::analyze
