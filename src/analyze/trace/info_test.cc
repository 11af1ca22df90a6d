#include "analyze/trace/info.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

Answer answer_to(const TraceDescription& description, std::string_view question) {
  const auto found = std::find_if(description.answers.begin(), description.answers.end(),
                                  [&](const Answer& answer) { return answer.question == question; });
  return found == description.answers.end() ? Answer{} : *found;
}

Switch option(const TraceDescription& description, std::string_view name) {
  for (const RecordingOption& candidate : description.options) {
    if (candidate.name == name) return candidate.state;
  }
  return Switch::kUnknown;
}

TEST(DescribeTrace, counts_events_of_each_kind) {
  const Model model = TraceBuilder()
                          .op("aten::mm", {.start_us = 0, .end_us = 10, .external_id = 1})
                          .call("cudaLaunchKernel", {.start_us = 2, .end_us = 4, .correlation = 7, .external_id = 1})
                          .kernel("gemm", {.start_us = 5, .end_us = 15, .correlation = 7, .external_id = 1})
                          .kernel("gemm", {.start_us = 10, .end_us = 20, .stream = 8})
                          .memory({.at_us = 1, .bytes = 64})
                          .build();
  const TraceDescription description = describe_trace(model);
  EXPECT_EQ(description.events.host[static_cast<size_t>(HostKind::kOp)], 1);
  EXPECT_EQ(description.events.host[static_cast<size_t>(HostKind::kRuntime)], 1);
  EXPECT_EQ(description.events.device[static_cast<size_t>(DeviceKind::kKernel)], 2);
  EXPECT_EQ(description.events.memory, 1);
  EXPECT_EQ(description.threads, 1);
  EXPECT_EQ(description.streams, 2);
  EXPECT_EQ(description.device_busy_ns, 15'000);  // 5..20, the overlap counts once
}

TEST(DescribeTrace, a_cpu_trace_says_what_to_record_for_kernels) {
  const TraceDescription description =
      describe_trace(TraceBuilder().op("aten::mm", {.start_us = 0, .end_us = 10}).build());
  EXPECT_TRUE(answer_to(description, "time per operator").possible);
  const Answer kernels = answer_to(description, "device time per kernel");
  EXPECT_FALSE(kernels.possible);
  EXPECT_EQ(kernels.reason, "CPU only: no device work");
  EXPECT_NE(kernels.remedy.find("ProfilerActivity.CUDA"), std::string_view::npos);
  EXPECT_EQ(answer_to(description, "time per operator").remedy, "");
}

TEST(DescribeTrace, shapes_make_flops_possible) {
  const TraceDescription without = describe_trace(TraceBuilder().op("aten::mm", {.start_us = 0, .end_us = 10}).build());
  EXPECT_FALSE(answer_to(without, "FLOPs").possible);
  const TraceDescription with =
      describe_trace(TraceBuilder().op("aten::mm", {.start_us = 0, .end_us = 10, .dims = "[[2, 3], [3, 4]]"}).build());
  EXPECT_TRUE(answer_to(with, "FLOPs").possible);
  EXPECT_EQ(option(with, "record_shapes"), Switch::kOn);
}

TEST(DescribeTrace, a_switch_that_torch_did_not_write_is_off_and_in_other_traces_unknown) {
  const TraceDescription torch =
      describe_trace(TraceBuilder().metadata("schemaVersion", "1").metadata("with_stack", "1").build());
  EXPECT_EQ(option(torch, "with_stack"), Switch::kOn);
  EXPECT_EQ(option(torch, "profile_memory"), Switch::kOff);
  EXPECT_EQ(option(describe_trace(TraceBuilder().build()), "profile_memory"), Switch::kUnknown);
}

TEST(DescribeTrace, flops_that_a_compiler_counted_are_there) {
  Model model = TraceBuilder().kernel("fusion.1", {.start_us = 0, .end_us = 5}).build();
  model.info.origin = Origin::kXPlane;
  EXPECT_FALSE(answer_to(describe_trace(model), "FLOPs").possible);
  model.kernel_details.flops[0] = 1000;
  EXPECT_TRUE(answer_to(describe_trace(model), "FLOPs").possible);
}

// The options of torch.profiler were listed, all "off", for files that it has nothing to do with.
TEST(DescribeTrace, other_tools_have_neither_torchs_options_nor_its_advice) {
  Model model = TraceBuilder().kernel("fusion.1", {.start_us = 0, .end_us = 5}).build();
  model.info.origin = Origin::kXPlane;
  const TraceDescription description = describe_trace(model);
  EXPECT_TRUE(description.options.empty());
  for (const Answer& answer : description.answers) {
    EXPECT_EQ(answer.remedy.find("torch"), std::string::npos) << answer.question << ": " << answer.remedy;
    EXPECT_EQ(answer.reason.find("cuda"), std::string::npos) << answer.question << ": " << answer.reason;
  }
}

TEST(DescribeTrace, a_file_that_cannot_hold_device_work_is_not_said_to_be_of_a_cpu) {
  Model model = TraceBuilder().build();
  model.info.origin = Origin::kMemorySnapshot;
  EXPECT_EQ(answer_to(describe_trace(model), "device time per kernel").reason, "no device work");
}

TEST(DescribeTrace, hundreds_of_spans_are_one_a_name) {
  TraceBuilder builder;
  for (int i = 0; i < 100; ++i)
    builder.annotation(i % 2 == 0 ? "Computing" : "Free", {.start_us = 10.0 * i, .end_us = 10.0 * i + 4});
  Model model = builder.build();
  for (Row row = 0; row < model.host_slices.size(); ++row) model.host_slices.kind[row] = HostKind::kSpan;
  const std::vector<Span> spans = describe_trace(model).spans;
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].count, 50);
  EXPECT_EQ(spans[0].duration_ns, 200'000);
}

TEST(DescribeTrace, data_loss_is_listed_before_what_is_normal) {
  Model model = TraceBuilder().build();
  model.losses[Stat::kFlowEndWithoutStart] = 5;
  model.losses[Stat::kTruncated] = 1;
  model.losses[Stat::kRecorderDroppedEvents] = 3;
  const TraceDescription description = describe_trace(model);
  ASSERT_EQ(description.losses.size(), 3u);
  EXPECT_EQ(description.losses[0].stat, Stat::kTruncated);
  EXPECT_EQ(description.losses[1].stat, Stat::kRecorderDroppedEvents);
  EXPECT_EQ(description.losses[2].count, 5u);
}

TEST(DescribeTrace, an_empty_trace_answers_nothing_and_does_not_fail) {
  const TraceDescription description = describe_trace(TraceBuilder().build());
  EXPECT_TRUE(std::none_of(description.answers.begin(), description.answers.end(),
                           [](const Answer& answer) { return answer.possible; }));
  EXPECT_EQ(description.unix_start_ns, kNoNumber);
}

TEST(DescribeTrace, the_true_step_is_the_median_of_the_steps_that_were_not_recorded) {
  Model m = TraceBuilder().build();
  using D = StepDisturbance;
  m.timed_steps = {.number = {0, 1, 2, 3, 4, 5, 6},
                   .disturbance = {D::kNone, D::kNone, D::kNone, D::kNone, D::kWarmup, D::kRecorded, D::kRecorded},
                   .start_ns = {0, 1, 2, 3, 4, 5, 6},
                   .duration_ns = {90, 10, 12, 14, 500, 20, 30}};
  const StepTimes times = describe_trace(m).step_times;
  EXPECT_EQ(times.true_step_ns, 13);
  EXPECT_EQ(times.true_step_count, 4);
  EXPECT_EQ(times.recorded_step_ns, 25);
  EXPECT_EQ(times.recorded_step_count, 2);
  EXPECT_EQ(describe_trace(TraceBuilder().build()).step_times.true_step_ns, kNoNumber);
}

TEST(DescribeTrace, module_slices_are_modules_not_stacks) {
  Model m = TraceBuilder()
                .op("aten::mm", {.start_us = 1, .end_us = 2})
                .python("net (Linear)", {.start_us = 0, .end_us = 3})
                .build();
  m.host_slices.module[0] = ModuleCall::kPath;
  for (const RecordingOption& option : describe_trace(m).options) {
    EXPECT_EQ(option.state == Switch::kOn, option.name == "with_modules") << option.name;
  }
}

TEST(DescribeTrace, a_true_step_is_not_claimed_from_fewer_than_three_undisturbed_steps) {
  using D = StepDisturbance;
  Model m = TraceBuilder().build();
  m.timed_steps = {.number = {1, 2, 3},
                   .disturbance = {D::kNone, D::kNone, D::kRecorded},
                   .start_ns = {1, 2, 3},
                   .duration_ns = {10, 12, 14}};
  EXPECT_EQ(describe_trace(m).step_times.true_step_ns, kNoNumber);
  EXPECT_EQ(describe_trace(m).step_times.true_step_count, 0);
  m.timed_steps.disturbance[2] = D::kNone;
  EXPECT_EQ(describe_trace(m).step_times.true_step_ns, 12);
}

TEST(DescribeTrace, switches_that_were_off_in_our_own_recording_are_off_and_not_unknown) {
  Model m = TraceBuilder().build();
  EXPECT_EQ(describe_trace(m).options[0].state, Switch::kUnknown);
  m.info.recorder.command = "python train.py";
  for (const auto& option : describe_trace(m).options) EXPECT_EQ(option.state, Switch::kOff);
}

}  // namespace
}  // namespace firelane::analyze
