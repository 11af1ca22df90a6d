// How the device is used: found with the fault, absent without it.
#include <gtest/gtest.h>

#include "advise/diagnose.h"
#include "advise/testing.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

struct DeviceStep {
  int collectives = 0;    // of 40 us each, one after another, after the kernels
  int32_t grid = 4096;    // of the kernels
  double pinning_us = 0;  // a cudaHostAlloc in each step
  int pinned_steps = 6;   // that have it
};

// Four kernels of 200 us a step, launched well ahead.
Judged program_of(const DeviceStep& what) {
  TraceBuilder builder;
  builder.device({.id = 0, .name = "NVIDIA H200", .total_memory_bytes = 1 << 30, .multiprocessors = 132});
  int64_t correlation = 1;
  double host = 0;
  double device = 100;
  for (int step = 0; step < 6; ++step) {
    const double from = host;
    const auto launch = [&](std::string_view op, std::string_view kernel, double us, int32_t grid) {
      builder.op(op, {.start_us = host, .end_us = host + 8});
      builder.call("cudaLaunchKernel", {.start_us = host + 2, .end_us = host + 6, .correlation = correlation});
      device = std::max(device, host + 8);
      builder.kernel(
          kernel,
          {.start_us = device, .end_us = device + us, .correlation = correlation++, .grid = grid, .block = 256});
      device += us + 1;
      host += 10;
    };
    if (what.pinning_us > 0 && step < what.pinned_steps) {
      builder.call("cudaHostAlloc", {.start_us = host, .end_us = host + what.pinning_us});
      host += what.pinning_us + 1;
    }
    for (int i = 0; i < 4; ++i)
      launch(i % 2 == 0 ? "aten::mm" : "aten::gelu", i % 2 == 0 ? "gemm_a" : "gelu_b", 200, what.grid);
    for (int i = 0; i < what.collectives; ++i)
      launch("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 40, 24);
    builder.call("cudaDeviceSynchronize", {.start_us = host, .end_us = device + 1});
    host = device + 2;
    builder.step(step, {.start_us = from, .end_us = host});
  }
  const Model model = builder.build();
  return diagnose(model);
}

TEST(SmallCollectives, many_in_a_step_are_told_to_be_joined) {
  const Judged many = program_of({.collectives = 24});
  const Finding* finding = find(many, "small-collectives");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->title.substr(0, 30), "24 collectives in each step ta");
  EXPECT_EQ(find(program_of({.collectives = 2}), "small-collectives"), nullptr);
}

TEST(ExposedCommunication, is_said_from_a_twentieth_of_a_step_on) {
  const Judged judged = program_of({.collectives = 6});
  const Finding* finding = find(judged, "exposed-communication");
  ASSERT_NE(finding, nullptr);
  EXPECT_GT(finding->share_of_step, 0.2);
  EXPECT_EQ(find(program_of({}), "exposed-communication"), nullptr);
}

TEST(ExposedCopies, from_pinned_memory_are_named_where_they_take_much_of_a_step) {
  const auto copying = [](double copy_us, const std::string& name) {
    TraceBuilder builder;
    double host = 0;
    for (int step = 1; step <= 4; ++step) {
      const double from = host;
      const double launch = host + 1;
      builder.call("cudaMemcpyAsync", {.start_us = launch, .end_us = launch + 2, .correlation = step * 2});
      builder.copy(name,
                   {.start_us = launch + 5, .end_us = launch + 5 + copy_us, .correlation = step * 2, .bytes = 1 << 20});
      builder.call("cudaLaunchKernel", {.start_us = launch + 3, .end_us = launch + 5, .correlation = step * 2 + 1});
      const double end = launch + 6 + copy_us + 500;
      builder.kernel("gemm", {.start_us = launch + 6 + copy_us, .end_us = end, .correlation = step * 2 + 1});
      builder.call("cudaDeviceSynchronize", {.start_us = launch + 6, .end_us = end + 1});
      host = end + 2;
      builder.step(step, {.start_us = from, .end_us = host});
    }
    return diagnose(builder.build());
  };
  const Judged judged = copying(500, "Memcpy HtoD (Pinned -> Device)");
  const Finding* finding = find(judged, "exposed-copies");
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(finding->share_of_step, 0.5, 0.05);
  EXPECT_NE(finding->title.find("1.0 MiB a step at 2 GB/s"), std::string::npos) << finding->title;
  EXPECT_EQ(find(copying(20, "Memcpy HtoD (Pinned -> Device)"), "exposed-copies"), nullptr);
  EXPECT_EQ(find(copying(500, "Memcpy HtoD (Pageable -> Device)"), "exposed-copies"), nullptr);
}

TEST(Underfilled, kernels_with_few_blocks_are_named) {
  const Judged few = program_of({.grid = 16});
  const Finding* finding = find(few, "device-underfilled");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("132 multiprocessors"), std::string::npos);
  EXPECT_EQ(find(program_of({}), "device-underfilled"), nullptr);
}

TEST(PinnedAllocation, in_every_step_is_told_and_a_first_one_is_not) {
  EXPECT_NE(find(program_of({.pinning_us = 900}), "pinned-allocation"), nullptr);
  EXPECT_EQ(find(program_of({.pinning_us = 900, .pinned_steps = 2}), "pinned-allocation"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
