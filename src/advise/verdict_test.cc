#include "advise/verdict.h"

#include <gtest/gtest.h>

#include "advise/testing.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

Model cpu_program(double op_us) {
  TraceBuilder builder;
  for (int i = 0; i < 4; ++i) {
    const double at = 1000.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 1000}).op("aten::mm", {.start_us = at, .end_us = at + op_us});
  }
  return builder.build();
}

TEST(Verdict, parts_make_up_the_sentence) {
  const Verdict verdict = diagnose(cpu_program(900)).verdict;
  EXPECT_EQ(verdict.label, "compute-bound");
  EXPECT_EQ(verdict.headline(), verdict.label + ": " + verdict.reason);
  EXPECT_EQ(verdict.sentence(), verdict.headline() + "; " + verdict.step);
}

TEST(Verdict, a_program_without_a_device_is_told_about_its_cpu) {
  const Verdict computing = diagnose(cpu_program(900)).verdict;
  EXPECT_EQ(computing.reason, "the CPU is busy in operators");
  EXPECT_EQ(computing.meaning, "CPU compute is the bottleneck.");
  const Verdict waiting = diagnose(cpu_program(10)).verdict;
  EXPECT_EQ(waiting.label, "overhead-bound");
  EXPECT_EQ(waiting.reason, "Python and dispatch overhead dominate; the math itself is short");
}

TEST(Verdict, a_busy_device_behind_a_busy_host_is_not_called_launch_overhead_of_100_percent) {
  TraceBuilder builder;
  int64_t id = 1;
  for (int op = 0; op < 80; ++op, ++id) {
    const double at = 100.0 * op;
    builder.op("aten::mm", {.start_us = at, .end_us = at + 100, .external_id = id});
    builder.call("cudaLaunchKernel", {.start_us = at + 1, .end_us = at + 8, .correlation = id, .external_id = id});
    builder.kernel("gemm", {.start_us = at + 9, .end_us = at + 89, .correlation = id, .external_id = id});
    if (op % 20 == 0) builder.step(op / 20, {.start_us = at, .end_us = at + 2000});
  }
  EXPECT_EQ(diagnose(builder.build()).verdict.headline(), "mixed: host and device take about equally long");
}

TEST(Verdict, copies_are_not_called_memory_of_the_device) {
  TraceBuilder builder;
  for (int64_t i = 0; i < 4; ++i) {
    const double at = 20.0 * static_cast<double>(i);  // the host runs ahead
    builder.step(i, {.start_us = at, .end_us = at + 20});
    builder.call("cudaMemcpyAsync", {.start_us = at + 1, .end_us = at + 5, .correlation = i + 1});
    builder.copy("Memcpy HtoD (Pinned -> Device)",
                 {.start_us = 10 + 50 * at, .end_us = 1005 + 50 * at, .correlation = i + 1});
  }
  const Verdict verdict = diagnose(builder.build()).verdict;
  EXPECT_EQ(verdict.headline(), "memory-bound: the device is busy with copies that no kernel overlaps");
  EXPECT_EQ(verdict.meaning, "Copies take the time: the GPU waits for its data rather than computing.");
}

// Whole functions of a program under its own names: whether they compute or read memory is not known.
TEST(Verdict, work_that_nobody_can_name_is_not_said_to_be_memory_bound) {
  TraceBuilder builder;
  for (int64_t i = 0; i < 4; ++i) {
    const double at = 20.0 * static_cast<double>(i);  // the host runs ahead
    builder.step(i, {.start_us = at, .end_us = at + 20});
    builder.call("runFunction", {.start_us = at + 1, .end_us = at + 5, .correlation = i + 1});
    builder.kernel("merge", {.start_us = 10 + 50 * at, .end_us = 1005 + 50 * at, .correlation = i + 1});
  }
  Model model = builder.build();
  EXPECT_EQ(diagnose(model).verdict.label, "memory-bound");
  model.info.accelerator = Accelerator::kMtia;
  EXPECT_EQ(diagnose(model).verdict.headline(),
            "unknown: the device is busy most of the time, and this trace does not show what limits its work");
}

TEST(Verdict, one_slow_step_does_not_make_the_device_100_percent_busy) {
  TraceBuilder builder;
  double at = 0;
  for (int64_t i = 0; i < 8; ++i) {
    const double length = i == 5 ? 10'000 : 1'000;
    builder.step(i, {.start_us = at, .end_us = at + length});
    builder.op("aten::mm", {.start_us = at, .end_us = at + length / 4, .external_id = i + 1});
    builder.call("cudaLaunchKernel",
                 {.start_us = at + 1, .end_us = at + 8, .correlation = i + 1, .external_id = i + 1});
    builder.kernel("gemm",
                   {.start_us = at + 9, .end_us = at + 9 + length / 2, .correlation = i + 1, .external_id = i + 1});
    at += length;
  }
  const std::string said = diagnose(builder.build()).verdict.step;
  EXPECT_NE(said.find("2.1 ms on average, the device is busy 50% of it"), std::string::npos) << said;
}

TEST(Verdict, shares_are_those_of_the_critical_path) {
  const Judged judged = diagnose(cpu_program(900));
  EXPECT_EQ(judged.verdict.bound.limit, analyze::Limit::kCompute);
  EXPECT_EQ(judged.verdict.bound.shares, judged.study.bound.shares);
}

// Steps of a long copying kernel, with DRAM's use sampled every 100 us.
Verdict of_copies(double dram_percent) {
  TraceBuilder builder;
  for (int64_t i = 0; i < 5; ++i) {
    const double at = 10'000.0 * static_cast<double>(i);
    builder.step(i, {.start_us = at, .end_us = at + 10'000});
    builder.op("aten::copy_", {.start_us = at, .end_us = at + 20, .external_id = i + 1});
    builder.call("cudaLaunchKernel",
                 {.start_us = at + 1, .end_us = at + 8, .correlation = i + 1, .external_id = i + 1});
    builder.kernel("vectorized_elementwise_kernel",
                   {.start_us = at + 9, .end_us = at + 9900, .correlation = i + 1, .external_id = i + 1});
    builder.call("cudaDeviceSynchronize", {.start_us = at + 30, .end_us = at + 9905, .correlation = 100 + i});
  }
  for (int i = 0; i < 500; ++i) {
    builder.gpu_counter(0, "dram__throughput.avg.pct_of_peak_sustained_elapsed", 100.0 * i, dram_percent);
  }
  return diagnose(builder.build()).verdict;
}

TEST(Verdict, memory_bound_is_measured_where_counters_say_so) {
  const Verdict proven = of_copies(85);
  EXPECT_EQ(proven.label, "memory-bound");
  EXPECT_EQ(proven.reason, "the device is busy moving data through its memory, measured: DRAM at 85% of its peak");
  const Verdict doubtful = of_copies(20);
  EXPECT_EQ(doubtful.reason, "the device is busy moving data through its memory");
  EXPECT_NE(doubtful.step.find("measured while it is busy: DRAM at 20% of its peak"), std::string::npos)
      << doubtful.step;
}

}  // namespace
}  // namespace firelane::advise
