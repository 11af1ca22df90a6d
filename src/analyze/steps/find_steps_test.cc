#include "analyze/steps/find_steps.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

StepList list_of(const Model& model) { return find_steps(model, host_time(model)); }

TEST(FindSteps, marked_steps_come_first_and_a_slow_first_one_is_warm_up) {
  TraceBuilder builder;
  builder.op("aten::mm", {.start_us = 0, .end_us = 1});
  builder.step(5, {.start_us = 0, .end_us = 300}).step(6, {.start_us = 300, .end_us = 400});
  builder.step(7, {.start_us = 400, .end_us = 510});
  const StepList list = list_of(builder.build());
  EXPECT_EQ(list.source, StepSource::kMarked);
  ASSERT_EQ(list.steps.size(), 3u);
  EXPECT_TRUE(list.steps[0].warm_up);
  EXPECT_EQ(list.judged, 2);
  EXPECT_EQ(list.median_ns, 100'000) << "the shorter of two";
  EXPECT_EQ(list.spread_ns, 5'000);
  EXPECT_EQ(list.window, (Interval{300'000, 510'000}));
}

TEST(FindSteps, a_step_far_above_the_median_is_an_outlier) {
  TraceBuilder builder;
  builder.op("aten::mm", {.start_us = 0, .end_us = 1});
  double at = 0;
  for (int i = 0; i < 6; ++i) {
    const double length = i == 3 ? 200 : 100;
    builder.step(i, {.start_us = at, .end_us = at + length});
    at += length;
  }
  const StepList list = list_of(builder.build());
  EXPECT_EQ(list.judged, 6);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(list.steps[i].outlier, i == 3) << i;
}

TEST(FindSteps, optimizer_steps_end_iterations) {
  TraceBuilder builder;
  for (int i = 0; i < 4; ++i) {
    builder.op("aten::mm", {.start_us = 100.0 * i, .end_us = 100.0 * i + 50});
    builder.annotation("Optimizer.step#SGD.step", {.start_us = 100.0 * i + 60, .end_us = 100.0 * i + 80});
  }
  const StepList list = list_of(builder.build());
  EXPECT_EQ(list.source, StepSource::kOptimizer);
  ASSERT_EQ(list.steps.size(), 3u);
  EXPECT_EQ(list.steps[0].start_ns, 80'000);
  EXPECT_EQ(list.steps[0].end_ns, 180'000);
}

TEST(FindSteps, a_sequence_of_operators_that_repeats_is_a_step) {
  TraceBuilder builder;
  builder.op("aten::embedding", {.start_us = 0, .end_us = 10}).op("aten::cat", {.start_us = 10, .end_us = 20});
  for (int i = 0; i < 5; ++i) {
    const double at = 100 + 30.0 * i;
    builder.op("aten::mm", {.start_us = at, .end_us = at + 8});
    builder.op("aten::mm", {.start_us = at + 9, .end_us = at + 15});
    builder.op("aten::add", {.start_us = at + 16, .end_us = at + 20});
  }
  const Model model = builder.build();
  const StepList list = list_of(model);
  EXPECT_EQ(list.source, StepSource::kRepetition);
  ASSERT_EQ(list.steps.size(), 5u);
  EXPECT_EQ(list.steps[0].duration_ns(), 30'000);
  EXPECT_EQ(steps_of(model).duration_ns[0], 30'000);
  EXPECT_EQ(steps_of(model, StepUse::kHost).size(), 0u);
  ASSERT_EQ(steps_of(model, StepUse::kShow).size(), 5u);
  EXPECT_EQ(steps_of(model, StepUse::kShow).start_ns[1], 130'000);
}

TEST(FindSteps, without_any_of_these_the_whole_trace_is_one_step) {
  const StepList list = list_of(TraceBuilder()
                                    .op("aten::a", {.start_us = 0, .end_us = 10})
                                    .op("aten::b", {.start_us = 10, .end_us = 30})
                                    .build());
  EXPECT_EQ(list.source, StepSource::kWholeTrace);
  EXPECT_EQ(list.window, (Interval{0, 30'000}));
}

TEST(Recording, the_estimated_cost_comes_out_of_the_host_and_not_out_of_the_device) {
  // Host-bound: 19 ops with a launch each, 40 us apart; kernels of 2 us. Nothing says who recorded it: the usual costs.
  TraceBuilder builder;
  for (int i = 0; i < 19; ++i) {
    const double at = 40.0 * i;
    builder.op("aten::mm", {.start_us = at, .end_us = at + 30});
    builder.call("cudaLaunchKernel", {.start_us = at + 10, .end_us = at + 20, .correlation = i + 1});
    builder.kernel("gemm", {.start_us = at + 21, .end_us = at + 23, .correlation = i + 1});
  }
  builder.step(1, {.start_us = 0, .end_us = 800});
  const Study s = study(builder.build());
  EXPECT_EQ(s.undone.recorded_ns, 800'000);
  EXPECT_EQ(s.undone.step_ns, 800'000 - 3'675 - 19 * (3'675 + 2'625));  // the step's mark, ops, launches
  EXPECT_EQ(s.undone.source, CostSource::kEstimated);
}

TEST(Recording, a_device_bound_step_is_not_made_faster) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100});
  for (int i = 0; i < 3; ++i) {
    builder.op("aten::mm", {.start_us = 10.0 * i, .end_us = 10.0 * i + 9});
    builder.call("cudaLaunchKernel", {.start_us = 10.0 * i + 1, .end_us = 10.0 * i + 8, .correlation = i + 1});
    builder.kernel("gemm", {.start_us = 5 + 1000.0 * i, .end_us = 1005 + 1000.0 * i, .correlation = i + 1});
  }
  const Study s = study(builder.build());
  EXPECT_GE(s.undone.step_ns, 3'000'000);
  EXPECT_EQ(s.bound.limit, Limit::kCompute);
  EXPECT_FALSE(s.undone.undecided);
}

TEST(Launches, delays_depth_and_short_kernels) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100})
      .call("cudaLaunchKernel", {.start_us = 10, .end_us = 14, .correlation = 1})
      .call("cudaLaunchKernel", {.start_us = 20, .end_us = 26, .correlation = 2})
      .kernel("a", {.start_us = 16, .end_us = 50, .correlation = 1})
      .kernel("b", {.start_us = 52, .end_us = 55, .correlation = 2});
  const LaunchTable launches = study(builder.build()).launches;
  EXPECT_EQ(launches.calls, 2);
  EXPECT_EQ(launches.call_ns, 10'000);
  EXPECT_EQ(launches.short_work, 1);
  EXPECT_EQ(launches.short_work_ns, 3'000);
  EXPECT_EQ(launches.max_depth, 1);
  EXPECT_EQ(launches.empty_queue_ns, 100'000 - 6'000 - 32'000);
  ASSERT_EQ(launches.rows.size(), 1u);
  EXPECT_EQ(launches.rows[0].max_delay_ns, 26'000);
}

TEST(Syncs, the_operator_that_asked_is_named) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100})
      .python("train.py(9): loop", {.start_us = 0, .end_us = 99})
      .op("aten::item", {.start_us = 10, .end_us = 60})
      .op("aten::_local_scalar_dense", {.start_us = 11, .end_us = 59})
      .call("cudaStreamSynchronize", {.start_us = 12, .end_us = 58, .correlation = 3})
      .op("aten::nonzero", {.start_us = 70, .end_us = 90})
      .call("cudaStreamSynchronize", {.start_us = 72, .end_us = 80, .correlation = 4})
      .call("cudaDeviceSynchronize", {.start_us = 92, .end_us = 95, .correlation = 5});
  const Model model = builder.build();
  const SyncTable syncs = study(model).syncs;
  ASSERT_EQ(syncs.rows.size(), 3u);
  EXPECT_EQ(syncs.rows[0].reason, SyncReason::kItem);
  EXPECT_EQ(model.text(model.host_slices.name[syncs.rows[0].op]), "aten::item");
  EXPECT_EQ(model.text(model.host_slices.name[syncs.rows[0].python]), "train.py(9): loop");
  EXPECT_EQ(syncs.rows[1].reason, SyncReason::kNonzero);
  EXPECT_EQ(syncs.rows[2].reason, SyncReason::kSynchronize);
}

}  // namespace
}  // namespace firelane::analyze
