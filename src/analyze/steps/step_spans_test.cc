// Where a step ends when the host runs ahead of the device.
#include "analyze/steps/step_spans.h"

#include <gtest/gtest.h>

#include "analyze/steps/find_steps.h"
#include "analyze/steps/steps.h"
#include "analyze/testing.h"

namespace firelane::analyze {
namespace {

// Steps of 10 us on the host, each launching a kernel of 30 us: the device is 20 us further behind after each.
TraceBuilder host_ahead(int steps) {
  TraceBuilder builder;
  for (int i = 0; i < steps; ++i) {
    const double at = 10.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 10});
    builder.op("aten::mm", {.start_us = at + 1, .end_us = at + 4});
    builder.call("cudaLaunchKernel", {.start_us = at + 2, .end_us = at + 3, .correlation = i + 1});
    builder.kernel("gemm", {.start_us = 5 + 30.0 * i, .end_us = 35 + 30.0 * i, .correlation = i + 1});
  }
  return builder;
}

std::vector<int64_t> lengths(const std::vector<Interval>& spans) {
  std::vector<int64_t> out;
  for (const Interval& span : spans) out.push_back(span.end_ns - span.start_ns);
  return out;
}

TEST(StepSpans, a_step_lasts_until_the_device_has_done_its_work) {
  const Model model = host_ahead(4).build();
  const StepList list = find_steps(model, host_time(model));
  EXPECT_EQ(lengths(list.judged_spans()), (std::vector<int64_t>{35'000, 30'000, 30'000, 30'000}));
  EXPECT_EQ(list.median_ns, 30'000);
  EXPECT_EQ(list.window.end_ns, 40'000) << "the window is the host's";
}

TEST(StepSpans, kernels_belong_to_the_step_that_launched_them_and_ops_to_the_one_they_start_in) {
  const StepTable table = step_table(host_ahead(4).build());
  for (const StepRow& row : table.rows) {
    EXPECT_EQ(row.ops, 1);
    EXPECT_EQ(row.kernels, 1);
    EXPECT_EQ(row.device_busy_ns, 30'000);
  }
  EXPECT_EQ(table.usual_ns, 30'000);
  EXPECT_EQ(table.outside.kernels, 0);
}

TEST(StepSpans, work_from_before_the_first_step_is_not_in_it) {
  TraceBuilder builder;
  builder.call("cudaLaunchKernel", {.start_us = 0, .end_us = 1, .correlation = 1});
  builder.kernel("before", {.start_us = 2, .end_us = 50, .correlation = 1});
  builder.step(0, {.start_us = 10, .end_us = 20}).step(1, {.start_us = 20, .end_us = 30});
  for (int i = 0; i < 2; ++i) {
    builder.call("cudaLaunchKernel", {.start_us = 11 + 10.0 * i, .end_us = 12 + 10.0 * i, .correlation = i + 2});
    builder.kernel("gemm", {.start_us = 50 + 30.0 * i, .end_us = 80 + 30.0 * i, .correlation = i + 2});
  }
  const Model model = builder.build();
  const StepList list = find_steps(model, host_time(model));
  EXPECT_EQ(list.steps[0].span.start_ns, 50'000);
  EXPECT_EQ(lengths(list.judged_spans()), (std::vector<int64_t>{30'000, 30'000}));
}

// A task of which the trace has no launch, in the middle of a step, was taken for work from before it: a step of 14 ms
// was said to take 2.
TEST(StepSpans, work_without_a_launch_behind_work_of_the_step_is_not_older_than_it) {
  TraceBuilder builder;
  builder.kernel("older", {.start_us = 0, .end_us = 15});
  builder.step(0, {.start_us = 10, .end_us = 60}).step(1, {.start_us = 60, .end_us = 110});
  for (int i = 0; i < 4; ++i) {
    builder.call("cudaLaunchKernel", {.start_us = 11 + 20.0 * i, .end_us = 12 + 20.0 * i, .correlation = i + 1});
    builder.kernel("gemm", {.start_us = 16 + 20.0 * i, .end_us = 20 + 20.0 * i, .correlation = i + 1});
    builder.kernel("unknown", {.start_us = 21 + 20.0 * i, .end_us = 25 + 20.0 * i});
  }
  const Model model = builder.build();
  const StepList list = find_steps(model, host_time(model));
  EXPECT_EQ(list.steps[0].span.start_ns, 15'000);
  EXPECT_EQ(lengths(list.judged_spans()), (std::vector<int64_t>{45'000, 50'000}));
}

TEST(StepSpans, a_pause_belongs_to_the_step_before_it_unless_steps_are_missing_there) {
  const auto spans_of = [](int64_t second) {
    const Model model =
        TraceBuilder().step(1, {.start_us = 0, .end_us = 10}).step(second, {.start_us = 16, .end_us = 26}).build();
    return lengths(find_steps(model, host_time(model)).judged_spans());
  };
  EXPECT_EQ(spans_of(2), (std::vector<int64_t>{16'000, 10'000}));
  EXPECT_EQ(spans_of(8), (std::vector<int64_t>{10'000, 10'000}));
}

TEST(StepSpans, what_is_usual_leaves_out_a_step_that_was_held_up) {
  const auto usual = [](const std::vector<int64_t>& ends) {
    std::vector<Interval> spans;
    for (const int64_t end : ends) spans.push_back({0, end});
    return usual_length(spans);
  };
  EXPECT_EQ(usual({}), 0);
  EXPECT_EQ(usual({30, 10, 20}), 20);
  EXPECT_EQ(usual({24, 20}), 20) << "of two, the first fills the profiler's buffers";
  EXPECT_EQ(usual({10, 20, 30, 40}), 25);
  EXPECT_EQ(usual({10, 20, 70, 80}), 20);
}

// What the replay of the graph says of the recorded steps, and what tables read off the trace.
TEST(StepSpans, are_the_same_in_the_replay_and_in_the_trace) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Model model = random_trace(seed);
    const Study s = study(model);
    // After warm-up, tables wait for every stream; the replay only for those that go on.
    if (s.steps.source != StepSource::kMarked || s.steps.steps[0].warm_up) continue;
    EXPECT_EQ(lengths(s.steps.judged_spans()), lengths(step_spans(model, s.graph, s.recorded, s.steps)))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace firelane::analyze
