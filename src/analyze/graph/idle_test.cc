#include "analyze/graph/idle.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

int64_t us(const Study& s, IdleCause cause) { return s.idle.by_cause[static_cast<size_t>(cause)] / 1000; }
int64_t us(const Study& s, Activity activity) { return us(s, cause_of(activity)); }

// A kernel 10..20, then nothing until one launched at 90 starts at 95; the host meanwhile as `fill` says.
template <typename Fill>
Study gap_with(const Fill& fill) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 120})
      .call("cudaLaunchKernel", {.start_us = 5, .end_us = 8, .correlation = 1})
      .kernel("a", {.start_us = 10, .end_us = 20, .correlation = 1})
      .call("cudaLaunchKernel", {.start_us = 90, .end_us = 94, .correlation = 2})
      .kernel("b", {.start_us = 95, .end_us = 120, .correlation = 2});
  fill(builder);
  return study(builder.build());
}

TEST(Idle, before_the_launch_the_host_is_late_and_after_it_is_latency) {
  const Study s = gap_with([](TraceBuilder&) {});
  EXPECT_EQ(s.idle.busy_ns, 35'000);
  EXPECT_EQ(us(s, Activity::kUnrecorded), 5 + 70);  // 0..5 and 20..90
  EXPECT_EQ(us(s, IdleCause::kLaunchLatency), 5 + 5);
}

TEST(Idle, a_data_loader_is_input_with_everything_below_it) {
  const Study s = gap_with([](TraceBuilder& builder) {
    builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", {.start_us = 30, .end_us = 80})
        .op("aten::stack", {.start_us = 40, .end_us = 70});
  });
  EXPECT_EQ(us(s, Activity::kInput), 50);
  EXPECT_EQ(us(s, Activity::kOp), 0);
  ASSERT_EQ(s.idle.gaps.size(), 2u);
  EXPECT_EQ(s.idle.gaps[1].main_cause, cause_of(Activity::kInput));
}

TEST(Idle, python_ops_allocations_and_collections_are_told_apart) {
  const Study s = gap_with([](TraceBuilder& builder) {
    builder.python("train.py(3): step", {.start_us = 22, .end_us = 88})
        .op("aten::mm", {.start_us = 30, .end_us = 60})
        .call("cudaMalloc", {.start_us = 35, .end_us = 50})
        .python("gc: generation 2", {.start_us = 70, .end_us = 78});
  });
  EXPECT_EQ(us(s, Activity::kOp), 15);
  EXPECT_EQ(us(s, Activity::kAllocation), 15);
  EXPECT_EQ(us(s, Activity::kGc), 8);
  EXPECT_EQ(us(s, Activity::kPython), 66 - 30 - 8);
}

TEST(Idle, overhead_that_the_profiler_marks_is_its_own) {
  const Study s = gap_with([](TraceBuilder& builder) {
    builder.overhead("Activity Buffer Request", {.start_us = 40, .end_us = 60, .thread = 99})
        .overhead("Lazy Function Loading", {.start_us = 60, .end_us = 65, .thread = 99});
  });
  EXPECT_EQ(us(s, Activity::kRecorder), 20);
  EXPECT_EQ(us(s, Activity::kLoading), 5);
}

TEST(Idle, a_copy_is_not_idle_time) {
  const Study s = gap_with([](TraceBuilder& builder) {
    builder.copy("Memcpy DtoD (Device -> Device)", {.start_us = 20, .end_us = 95, .stream = 9});
  });
  EXPECT_EQ(s.idle.busy_ns, 110'000);
  EXPECT_EQ(s.breakdown.total.copy_ns, 75'000);
}

TEST(Idle, work_without_a_launch_has_an_unknown_cause) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100})
      .op("aten::mm", {.start_us = 0, .end_us = 5})
      .kernel("a", {.start_us = 40, .end_us = 100});
  EXPECT_EQ(us(study(builder.build()), IdleCause::kUnknown), 40);
}

TEST(Breakdown, communication_counts_only_where_nothing_computes) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 100})
      .op("aten::mm", {.start_us = 0, .end_us = 5})
      .kernel("gemm", {.start_us = 0, .end_us = 50})
      .kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", {.start_us = 40, .end_us = 80, .stream = 9})
      .copy("Memcpy HtoD (Pinned -> Device)", {.start_us = 70, .end_us = 90, .stream = 10});
  const BreakdownRow row = study(builder.build()).breakdown.total;
  EXPECT_EQ(row.compute_ns, 50'000);
  EXPECT_EQ(row.communication_ns, 30'000);
  EXPECT_EQ(row.copy_ns, 10'000);
}

}  // namespace
}  // namespace firelane::analyze
