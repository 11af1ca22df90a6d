// Each rule on a hand-made step: found with its fault, absent without it.
#include <gtest/gtest.h>

#include <algorithm>

#include "advise/diagnose.h"
#include "advise/rule.h"
#include "advise/testing.h"
#include "import/load.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

// Device-bound steps: three launches at the start of each, kernels back to back that fill it.
constexpr double kStepUs = 3000;
TraceBuilder healthy(int steps = 4, double step_us = kStepUs) {
  TraceBuilder builder;
  int64_t correlation = 1;
  for (int i = 0; i < steps; ++i) {
    const double at = step_us * i;
    builder.step(i, {.start_us = at, .end_us = at + step_us});
    for (int k = 0; k < 3; ++k) {
      const double op = at + 20.0 * k;
      builder.op("aten::mm", {.start_us = op, .end_us = op + 15});
      builder.call("cudaLaunchKernel", {.start_us = op + 5, .end_us = op + 9, .correlation = correlation});
      const double length = (step_us - 16) / 3;
      const double start = at + 12 + (length + 1) * k;
      builder.kernel("gemm", {.start_us = start, .end_us = start + length, .correlation = correlation++});
    }
  }
  return builder;
}

TEST(Diagnose, a_healthy_program_gets_nothing_worth_fixing_and_why) {
  const Judged diagnosis = diagnose(healthy().build());
  EXPECT_TRUE(diagnosis.findings.empty()) << diagnosis.findings[0].title;
  EXPECT_TRUE(diagnosis.healthy);
  EXPECT_EQ(diagnosis.headline(), "Nothing worth fixing");
  EXPECT_NE(diagnosis.why.find("the device is busy"), std::string::npos);
  EXPECT_EQ(diagnosis.study.bound.limit, analyze::Limit::kCompute);
}

TEST(Diagnose, a_trace_of_nothing_has_nothing_to_judge_and_is_not_called_healthy) {
  TraceBuilder builder;
  builder.overhead("Buffer Flush", {.start_us = 0, .end_us = 10});
  for (const Judged& diagnosis : {diagnose(TraceBuilder().build()), diagnose(builder.build())}) {
    EXPECT_EQ(diagnosis.state, State::kEmpty);
    EXPECT_TRUE(diagnosis.nothing_to_say());
    EXPECT_EQ(diagnosis.headline(), "Not enough data");
    EXPECT_FALSE(diagnosis.healthy);
    EXPECT_TRUE(diagnosis.findings.empty());
    EXPECT_EQ(diagnosis.verdict.label, "nothing to analyze");
    ASSERT_EQ(diagnosis.notes.size(), 1u);
    EXPECT_NE(diagnosis.notes[0].find("firelane record"), std::string::npos);
  }
  EXPECT_TRUE(diagnose(healthy().build()).is_judged());
}

TEST(Diagnose, the_headline_says_what_follows_it) {
  EXPECT_EQ(Diagnosis{.findings = {Finding{}}}.headline(), "What to fix, largest first");
  EXPECT_EQ((Diagnosis{.findings = {Finding{}}, .healthy = true, .why = "all is well"}.headline()),
            "No change found that would make steps shorter (1 remark below)");
  EXPECT_EQ(Diagnosis{.why = "the device is idle"}.headline(), "No fix found");
  EXPECT_EQ(Diagnosis{}.headline(), "Not enough data");
  EXPECT_EQ(Diagnosis{.state = State::kNoVerdict}.headline(), "");
}

TEST(Diagnose, a_slow_step_does_not_change_what_a_step_takes_and_is_said_beside_it) {
  TraceBuilder builder;
  for (int i = 0; i < 5; ++i) {
    const double at = 1000.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + (i == 4 ? 6000 : 1000)});
    builder.op("aten::mm", {.start_us = at, .end_us = at + 900});
  }
  const Judged diagnosis = diagnose(builder.build());
  EXPECT_NEAR(static_cast<double>(diagnosis.study.usual_step_ns), 1e6, 2e3);
  EXPECT_EQ(diagnosis.verdict.step, "a step takes 999.2 us, 2.0 ms on average");
  // As fast as the slowest of the others, which are all alike: 5000 us of 5 steps.
  const Finding* slow = find(diagnosis, "slow-steps");
  ASSERT_NE(slow, nullptr);
  EXPECT_EQ(slow->gain.middle_ns(), 1'000'000);
  EXPECT_TRUE(slow->title.starts_with("1 step is ")) << slow->title;
  EXPECT_TRUE(slow->try_text.starts_with("look at this step")) << slow->try_text;
}

TEST(Diagnose, a_loader_in_the_way_is_input_bound_with_all_its_time_to_gain) {
  // 4000 us of loading, then 1000 us of launches and kernels.
  const auto build = [](double loading_us, std::string_view loader = "_SingleProcessDataLoaderIter") {
    TraceBuilder builder;
    for (int i = 0; i < 3; ++i) {
      const double at = (loading_us + 1000) * i;
      builder.step(i, {.start_us = at, .end_us = at + loading_us + 1000});
      builder.annotation("enumerate(DataLoader)#" + std::string(loader) + ".__next__",
                         {.start_us = at, .end_us = at + loading_us});
      builder.op("aten::mm", {.start_us = at + loading_us, .end_us = at + loading_us + 30});
      builder.call("cudaLaunchKernel",
                   {.start_us = at + loading_us + 5, .end_us = at + loading_us + 9, .correlation = i + 1});
      builder.kernel("gemm", {.start_us = at + loading_us + 15, .end_us = at + loading_us + 985, .correlation = i + 1});
      builder.call("cudaDeviceSynchronize", {.start_us = at + loading_us + 40, .end_us = at + loading_us + 990});
    }
    return builder.build();
  };
  const Judged diagnosis = diagnose(build(4000));
  ASSERT_FALSE(diagnosis.findings.empty());
  const Finding& finding = diagnosis.findings[0];
  EXPECT_EQ(finding.id, "input-bound");
  EXPECT_EQ(finding.cost_ns, 4'000'000);
  // All of it at best, 85% at worst; the loader's own mark costs a little to record.
  EXPECT_NEAR(static_cast<double>(finding.gain.middle_ns()), 3.7e6, 1e4);
  EXPECT_NEAR(finding.share_of_step, 0.8, 0.01);
  EXPECT_NE(finding.try_code.find("num_workers"), std::string::npos);
  EXPECT_FALSE(finding.slices.empty());
  EXPECT_EQ(diagnosis.study.bound.limit, analyze::Limit::kInput);
  EXPECT_EQ(find(diagnose(build(5)), "input-bound"), nullptr);
  EXPECT_NE(find(diagnose(build(600)), "input-bound"), nullptr);
  constexpr std::string_view kWorkers = "_MultiProcessingDataLoaderIter";
  EXPECT_NE(find(diagnose(build(4000, kWorkers)), "input-bound"), nullptr);
  EXPECT_EQ(find(diagnose(build(600, kWorkers)), "input-bound"), nullptr) << "the batch was there: it is handed over";
}

// Host-bound: `launches` small kernels a step, 50 us of host for each.
Model host_bound(int steps, int launches, double kernel_us) {
  TraceBuilder builder;
  int64_t correlation = 1;
  for (int i = 0; i < steps; ++i) {
    const double at = 50.0 * launches * i;
    builder.step(i, {.start_us = at, .end_us = at + 50.0 * launches});
    for (int k = 0; k < launches; ++k) {
      const double op = at + 50.0 * k;
      builder.op("aten::add", {.start_us = op, .end_us = op + 40});
      builder.call("cudaLaunchKernel", {.start_us = op + 20, .end_us = op + 30, .correlation = correlation});
      builder.kernel("elementwise", {.start_us = op + 32, .end_us = op + 32 + kernel_us, .correlation = correlation++});
    }
  }
  return builder.build();
}

TEST(Diagnose, small_kernels_are_launch_overhead) {
  const Judged diagnosis = diagnose(host_bound(3, 40, 2));
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings[0].id, "launch-overhead");
  EXPECT_GT(diagnosis.findings[0].gain.high_ns, diagnosis.findings[0].gain.low_ns);
  EXPECT_GT(diagnosis.findings[0].gain.low_ns, 0);
  EXPECT_EQ(diagnosis.study.bound.limit, analyze::Limit::kOverhead);
}

TEST(Diagnose, long_stretches_of_other_code_are_no_launch_overhead) {
  // A step is 40 launches in 2000 us, then 8000 us of code that calls no operator.
  TraceBuilder builder;
  int64_t correlation = 1;
  for (int i = 0; i < 4; ++i) {
    const double at = 10'000.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 10'000});
    for (int k = 0; k < 40; ++k) {
      const double op = at + 50.0 * k;
      builder.op("aten::add", {.start_us = op, .end_us = op + 40});
      builder.call("cudaLaunchKernel", {.start_us = op + 20, .end_us = op + 30, .correlation = correlation});
      builder.kernel("elementwise", {.start_us = op + 32, .end_us = op + 34, .correlation = correlation++});
    }
  }
  const Judged diagnosis = diagnose(builder.build());
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings[0].id, "host-code");
  EXPECT_NEAR(static_cast<double>(diagnosis.findings[0].gain.middle_ns()), 8e6, 1e5);
  const Finding* overhead = find(diagnosis, "launch-overhead");
  if (overhead != nullptr) {
    EXPECT_LT(overhead->gain.middle_ns(), 2'000'000);
  }
}

TEST(Diagnose, one_launch_a_step_is_not_prepared_one_by_one) {
  const auto title = [](int launches) {
    const Judged diagnosis = diagnose(host_bound(30, launches, 2));
    const Finding* finding = find(diagnosis, "launch-overhead");
    return finding == nullptr ? std::string() : finding->title;
  };
  EXPECT_NE(title(1).find(" while its launch is prepared ("), std::string::npos) << title(1);
  EXPECT_NE(title(2).find(" while 2 launches are prepared one by one ("), std::string::npos) << title(2);
}

TEST(Diagnose, a_faster_host_is_promised_no_more_than_the_devices_idle_time) {
  // Two streams take turns: 100 us each, the second launched when the first is done. The replay would run both at once.
  TraceBuilder builder;
  int64_t correlation = 1;
  for (int i = 0; i < 4; ++i) {
    builder.step(i, {.start_us = 300.0 * i, .end_us = 300.0 * (i + 1)});
    for (int k = 0; k < 2; ++k) {
      const double at = 300.0 * i + 150.0 * k;
      builder.op("aten::mm", {.start_us = at, .end_us = at + 140});
      builder.call("cudaLaunchKernel", {.start_us = at + 30, .end_us = at + 36, .correlation = correlation});
      builder.kernel("gemm", {.start_us = at + 40, .end_us = at + 140, .stream = 7 + k, .correlation = correlation++});
    }
  }
  const Judged diagnosis = diagnose(builder.build());
  const Finding* finding = find(diagnosis, "launch-overhead");
  ASSERT_NE(finding, nullptr);
  const double idle = 1 - diagnosis.study.bound.device_busy;
  EXPECT_LE(static_cast<double>(finding->gain.high_ns), idle * static_cast<double>(diagnosis.study.undone.step_ns));
}

TEST(Diagnose, a_host_that_only_just_keeps_up_is_not_called_overhead) {
  EXPECT_EQ(find(diagnose(host_bound(3, 40, 49)), "launch-overhead"), nullptr);
}

TEST(Diagnose, reading_a_number_in_the_loop_is_a_host_sync) {
  // The kernel of 1000 us is awaited by .item(); then the host needs 500 us before it launches again.
  const auto build = [](bool reads) {
    TraceBuilder builder;
    for (int i = 0; i < 4; ++i) {
      const double at = 1600.0 * i;
      builder.step(i, {.start_us = at, .end_us = at + 1600});
      builder.op("aten::mm", {.start_us = at + 500, .end_us = at + 530});
      builder.call("cudaLaunchKernel", {.start_us = at + 505, .end_us = at + 510, .correlation = i + 1});
      builder.kernel("gemm", {.start_us = at + 520, .end_us = at + 1520, .correlation = i + 1});
      if (!reads) continue;
      builder.op("aten::item", {.start_us = at + 540, .end_us = at + 1535});
      builder.call("cudaStreamSynchronize", {.start_us = at + 545, .end_us = at + 1525});
    }
    return builder.build();
  };
  const Judged diagnosis = diagnose(build(true));
  const Finding* finding = find(diagnosis, "host-sync");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->events, 4);
  EXPECT_EQ(finding->cost_ns, 980'000);
  EXPECT_NE(finding->title.find(".item()"), std::string::npos);
  // Without it the host needs 620 us a step and the device 1000: 500 to 600 us of 1600 are to gain.
  EXPECT_GT(finding->gain.middle_ns(), 400'000);
  EXPECT_LT(finding->gain.middle_ns(), 660'000);
  EXPECT_EQ(find(diagnose(build(false)), "host-sync"), nullptr);
}

TEST(Diagnose, copies_from_pageable_memory_make_the_host_wait) {
  const auto build = [](bool pageable) {
    TraceBuilder builder;
    for (int i = 0; i < 3; ++i) {
      const double at = 1000.0 * i;
      builder.step(i, {.start_us = at, .end_us = at + 1000});
      builder.op("aten::copy_", {.start_us = at + 10, .end_us = at + (pageable ? 420 : 30)});
      builder.call("cudaMemcpyAsync",
                   {.start_us = at + 15, .end_us = at + (pageable ? 400 : 20), .correlation = i + 1});
      if (pageable) builder.call("cudaStreamSynchronize", {.start_us = at + 400, .end_us = at + 410});
      builder.copy(pageable ? "Memcpy HtoD (Pageable -> Device)" : "Memcpy HtoD (Pinned -> Device)",
                   {.start_us = at + 25, .end_us = at + 400, .correlation = i + 1});
    }
    return builder.build();
  };
  const Judged diagnosis = diagnose(build(true));
  const Finding* finding = find(diagnosis, "pageable-copies");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost_ns, 395'000);
  EXPECT_EQ(finding->events, 3) << "a copy and the wait for it are one copy";
  EXPECT_EQ(find(diagnose(build(false)), "pageable-copies"), nullptr);
}

TEST(Diagnose, garbage_collection_is_found_where_it_stops_the_steps) {
  TraceBuilder builder;
  for (int i = 0; i < 3; ++i) {
    const double at = 1000.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 1000}).op("aten::mm", {.start_us = at, .end_us = at + 400});
    builder.python("gc: generation 2", {.start_us = at + 500, .end_us = at + 800});
  }
  const Judged diagnosis = diagnose(builder.build());
  const Finding* finding = find(diagnosis, "gc-pauses");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost_ns, 300'000);
  EXPECT_EQ(finding->events, 3);
  EXPECT_NEAR(static_cast<double>(finding->gain.middle_ns()), 295'500, 2'000);  // nearly all of it
}

TEST(Diagnose, first_calls_compilation_and_first_memory_are_one_time_costs) {
  const auto build = [](bool cold) {
    TraceBuilder builder;
    double at = 0;
    for (int i = 0; i < 6; ++i) {
      const double start = at;
      const bool first = cold && i == 0;
      const double conv = first ? 600 : 100;
      builder.op("aten::cudnn_convolution", {.start_us = at, .end_us = at + conv, .dims = "[[8, 3, 32, 32]]"});
      at += conv;
      if (first) {
        builder.annotation("_compile.compile_inner (dynamo_timed)", {.start_us = at, .end_us = at + 300});
        at += 300;
        builder.call("cudaMalloc", {.start_us = at, .end_us = at + 100});
        at += 100;
      }
      builder.op("aten::mm", {.start_us = at, .end_us = at + 5000});
      at += 5000;
      builder.step(i, {.start_us = start, .end_us = at});
    }
    return builder.build();
  };
  const Judged diagnosis = diagnose(build(true));
  const Finding* finding = find(diagnosis, "one-time-costs");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost_ns, (500'000 + 300'000 + 100'000) / 6);
  EXPECT_NE(finding->title.find("operators ran for the first time (500.0 us)"), std::string::npos) << finding->title;
  EXPECT_NE(finding->title.find("compiled or tuned (300.0 us)"), std::string::npos);
  EXPECT_NE(finding->title.find("memory was requested from the driver (100.0 us)"), std::string::npos);
  EXPECT_EQ(find(diagnose(build(false)), "one-time-costs"), nullptr);
}

TEST(Diagnose, loading_kernels_inside_of_the_steps_is_a_one_time_cost) {
  TraceBuilder builder = healthy();
  builder.overhead("Lazy Function Loading", {.start_us = 70, .end_us = 1000, .thread = 99});
  const Judged diagnosis = diagnose(builder.build());
  const Finding* finding = find(diagnosis, "one-time-costs");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost_ns, 930'000 / 4);
}

TEST(Diagnose, a_slow_step_says_what_it_had_more_of) {
  TraceBuilder builder;
  double at = 0;
  for (int i = 0; i < 8; ++i) {
    const double length = i == 5 ? 3000 : 1000;
    builder.step(i, {.start_us = at, .end_us = at + length}).op("aten::mm", {.start_us = at, .end_us = at + 900});
    if (i == 5) builder.python("save.py(1): checkpoint", {.start_us = at + 950, .end_us = at + 2950});
    at += length;
  }
  const Judged diagnosis = diagnose(builder.build());
  const Finding* finding = find(diagnosis, "slow-steps");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->events, 1);
  EXPECT_EQ(finding->cost_ns, 250'000);
  EXPECT_NE(finding->title.find("Python"), std::string::npos);
}

TEST(Diagnose, communication_is_found_when_nothing_hides_it) {
  const auto build = [](int64_t stream_start_us) {
    TraceBuilder builder;
    for (int i = 0; i < 3; ++i) {
      const double at = 1600.0 * i;
      builder.step(i, {.start_us = at, .end_us = at + 1600}).op("aten::mm", {.start_us = at, .end_us = at + 60});
      builder.call("cudaLaunchKernel", {.start_us = at + 5, .end_us = at + 9, .correlation = 2 * i + 1});
      builder.call("cudaLaunchKernel", {.start_us = at + 15, .end_us = at + 19, .correlation = 2 * i + 2});
      builder.kernel("gemm", {.start_us = at + 20, .end_us = at + 1020, .correlation = 2 * i + 1});
      builder.kernel("ncclDevKernel_AllReduce", {.start_us = at + static_cast<double>(stream_start_us),
                                                 .end_us = at + static_cast<double>(stream_start_us) + 500,
                                                 .stream = 20,
                                                 .correlation = 2 * i + 2});
      builder.call("cudaDeviceSynchronize", {.start_us = at + 70, .end_us = at + 1560});
    }
    return builder.build();
  };
  const Judged diagnosis = diagnose(build(1022));
  const Finding* finding = find(diagnosis, "exposed-communication");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost_ns, 500'000);
  EXPECT_EQ(finding->gain.middle_ns(), 375'000);  // all of it, or half
  EXPECT_NE(finding->title.find("takes 500.0 us of each step (31%)"), std::string::npos) << finding->title;
  EXPECT_NE(finding->confirm_by.find("waiting for a late rank cannot be separated from data transfer"),
            std::string::npos);
  EXPECT_NE(finding->confirm_by.find("firelane ranks DIR"), std::string::npos);
  EXPECT_NE(diagnosis.verdict.step.find("31% with communication alone"), std::string::npos) << diagnosis.verdict.step;
  EXPECT_EQ(find(diagnose(build(100)), "exposed-communication"), nullptr);
}

Model optimizer_step(const char* op, int ops, const std::string& optimizer = "AdamW") {
  TraceBuilder builder;
  int64_t correlation = 1;
  const double length = 100 + 20.0 * ops;
  for (int i = 0; i < 3; ++i) {
    const double at = length * i;
    builder.step(i, {.start_us = at, .end_us = at + length});
    builder.annotation("Optimizer.step#" + optimizer + ".step", {.start_us = at + 50, .end_us = at + 60 + 20.0 * ops});
    for (int k = 0; k < ops; ++k) {
      const double start = at + 55 + 20.0 * k;
      builder.op(op, {.start_us = start, .end_us = start + 18});
      builder.call("cudaLaunchKernel", {.start_us = start + 5, .end_us = start + 15, .correlation = correlation});
      builder.kernel("elementwise", {.start_us = start + 16, .end_us = start + 18, .correlation = correlation++});
    }
  }
  return builder.build();
}

TEST(Diagnose, an_optimizer_that_goes_tensor_by_tensor_is_found_and_a_grouped_one_is_not) {
  EXPECT_NE(find(diagnose(optimizer_step("aten::addcdiv_", 60)), "single-tensor-optimizer"), nullptr);
  EXPECT_EQ(find(diagnose(optimizer_step("aten::_foreach_addcdiv_", 60)), "single-tensor-optimizer"), nullptr);
  EXPECT_EQ(find(diagnose(optimizer_step("aten::addcdiv_", 4)), "single-tensor-optimizer"), nullptr);
}

TEST(Diagnose, the_optimizer_to_write_is_the_users_own_in_the_form_it_has) {
  const auto code = [](const std::string& optimizer) {
    const Judged diagnosis = diagnose(optimizer_step("aten::addcdiv_", 60, optimizer));
    const Finding* finding = find(diagnosis, "single-tensor-optimizer");
    return finding == nullptr ? "" : finding->try_code;
  };
  EXPECT_EQ(code("SGD"), "torch.optim.SGD(model.parameters(), lr=lr, fused=True)");
  EXPECT_EQ(code("RMSprop"), "torch.optim.RMSprop(model.parameters(), lr=lr, foreach=True)");
  EXPECT_EQ(code("MyOwn"), "torch._foreach_add_(parameters, gradients, alpha=-lr)  # for all of them at once");
}

TEST(Diagnose, an_optimizer_that_is_written_by_hand_goes_tensor_by_tensor_too) {
  // Into new tensors, as it stands in the paper.
  const Judged own = diagnose(optimizer_step("aten::sqrt", 60, "AdamOfMine"));
  const Finding* finding = find(own, "single-tensor-optimizer");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->try_code, "torch.optim.AdamW(model.parameters(), lr=lr, fused=True)");
  EXPECT_TRUE(finding->try_text.starts_with("AdamOfMine looks like Adam")) << finding->try_text;
  EXPECT_NE(find(diagnose(optimizer_step("aten::mul", 60, "Mine")), "single-tensor-optimizer"), nullptr);
  EXPECT_EQ(find(diagnose(optimizer_step("aten::mul", 60, "SGD")), "single-tensor-optimizer"), nullptr)
      << "torch's own update in place";
  EXPECT_EQ(find(diagnose(optimizer_step("aten::mm", 60, "Shampoo")), "single-tensor-optimizer"), nullptr);
}

// A step of 1000 us on the CPU that ends with `fills` zero_ ops in 200 us of zero_grad.
Model zero_grad_step(int fills) {
  TraceBuilder builder;
  for (int i = 0; i < 3; ++i) {
    const double at = 1000.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 1000}).op("aten::mm", {.start_us = at, .end_us = at + 700});
    builder.annotation("Optimizer.zero_grad#SGD.zero_grad", {.start_us = at + 750, .end_us = at + 950});
    for (int k = 0; k < fills; ++k) {
      const double each = 180.0 / fills;
      builder.op("aten::zero_", {.start_us = at + 760 + each * k, .end_us = at + 760 + each * (k + 1)});
    }
  }
  return builder.build();
}

TEST(Diagnose, zero_grad_that_writes_zeros_is_found) {
  const Judged diagnosis = diagnose(zero_grad_step(36));
  const Finding* finding = find(diagnosis, "zero-grad-fills");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost_ns, 200'000);
  EXPECT_EQ(find(diagnose(zero_grad_step(0)), "zero-grad-fills"), nullptr);
}

TEST(Diagnose, on_a_cpu_zeros_in_large_gradients_cost_no_more_than_fresh_memory) {
  // One fill of 180 us of a step of 1 ms: 5 us of calling it, and 15 of 20 us around it, could go. That is less than
  // such steps vary by themselves.
  EXPECT_EQ(find(diagnose(zero_grad_step(1)), "zero-grad-fills"), nullptr);
}

TEST(Diagnose, recording_that_distorts_is_said_and_does_not_make_a_program_unhealthy) {
  // 1000 ops of 2 us a step on the CPU: the estimate for torch.profiler is 0.39 us each.
  TraceBuilder builder;
  for (int i = 0; i < 3; ++i) {
    const double at = 2000.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 2000});
    for (int k = 0; k < 1000; ++k) builder.op("aten::add", {.start_us = at + 2.0 * k, .end_us = at + 2.0 * k + 1.5});
  }
  const Judged diagnosis = diagnose(builder.build());
  const Finding* finding = find(diagnosis, "recording-distorts");
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(finding->share_of_step, 0.195, 0.005);
}

TEST(Diagnose, findings_are_ranked_by_gain) {
  Result<Model> model = importer::load_trace(std::string(FIRELANE_TEST_DATA) + "/gpt_slowdata.json.gz");
  ASSERT_TRUE(model.ok());
  const Judged diagnosis = diagnose(model.value());
  ASSERT_GE(diagnosis.findings.size(), 2u);
  EXPECT_EQ(diagnosis.findings[0].id, "input-bound");
  EXPECT_NEAR(static_cast<double>(diagnosis.findings[0].cost_ns), 67.5e6, 1e6);
  const auto gains_less = [](const Finding& a, const Finding& b) { return a.gain.middle_ns() < b.gain.middle_ns(); };
  EXPECT_TRUE(std::is_sorted(diagnosis.findings.rbegin(), diagnosis.findings.rend(), gains_less));
}

TEST(Diagnose, the_gpt_on_an_idle_device_is_launch_overhead_first) {
  for (const char* name : {"/gpt_plain.json.gz", "/gpt_full.json.gz"}) {
    Result<Model> model = importer::load_trace(FIRELANE_TEST_DATA + std::string(name));
    ASSERT_TRUE(model.ok());
    const Judged diagnosis = diagnose(model.value());
    ASSERT_FALSE(diagnosis.findings.empty());
    EXPECT_EQ(diagnosis.findings[0].id, "launch-overhead") << name;
  }
}

TEST(Rules, ids_are_unique_and_explained) {
  for (const Rule& rule : all_rules()) {
    EXPECT_EQ(find_rule(rule.id), &rule) << rule.id;
    for (const std::string_view part : {"\n\nWhat to do: ", "\n\nWhen not: "}) {
      EXPECT_NE(rule.explanation.find(part), std::string_view::npos) << rule.id << part;
    }
  }
  EXPECT_EQ(find_rule("no-such-rule"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
