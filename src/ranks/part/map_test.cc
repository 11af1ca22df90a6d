#include "ranks/part/map.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::ranks {
namespace {

// Two steps: a matmul of a module, called from the user's code, then a collective.
Model two_steps() {
  TraceBuilder builder;
  for (int step = 0; step < 2; ++step) {
    const double at = 100.0 * step;
    builder.step(step + 1, {.start_us = at, .end_us = at + 99})
        .python("nn.Module: Linear_0", {.start_us = at + 1, .end_us = at + 30})
        .op("aten::mm", {.start_us = at + 2,
                         .end_us = at + 20,
                         .external_id = step + 1,
                         .stack = "torch/nn/linear.py(9): forward;/home/me/train.py(41): step"})
        .call("cudaLaunchKernel",
              {.start_us = at + 3, .end_us = at + 5, .correlation = step + 1, .external_id = step + 1})
        .kernel("gemm", {.start_us = at + 10, .end_us = at + 50, .correlation = step + 1, .external_id = step + 1})
        .kernel("relu", {.start_us = at + 50, .end_us = at + 55, .correlation = step + 101})
        .kernel("ncclDevKernel_AllReduce_Sum_f32", {.start_us = at + 60, .end_us = at + 80, .correlation = step + 201})
        .memory({.at_us = at + 4, .bytes = 100, .device_type = 1, .total_allocated = 1000 * (step + 1)});
  }
  return builder.build();
}

TEST(Map, a_collective_has_the_longest_kernel_before_it_with_its_place) {
  const Part part = map_trace(StudiedTrace(two_steps()));
  ASSERT_EQ(part.collectives.size(), 2u);
  ASSERT_EQ(part.collectives.kernel[1], 0);
  EXPECT_EQ(part.collectives.kernel_ns[1], 40'000);
  const PartKernel& longest = part.kernels[0];
  EXPECT_EQ(longest.name, "gemm");
  EXPECT_EQ(longest.op, "aten::mm");
  EXPECT_EQ(longest.module, "Linear_0");
  EXPECT_EQ(longest.line, "train.py(41): step");
  EXPECT_EQ(part.kernels[1].line, "");
}

TEST(Map, a_step_has_the_most_memory_that_was_allocated_in_it) {
  const Part part = map_trace(StudiedTrace(two_steps()));
  EXPECT_EQ(part.steps.peak_bytes, (std::vector<int64_t>{1000, 2000}));
  EXPECT_EQ(part.peak_bytes, 2000);
}

TEST(Map, time_in_which_a_checkpoint_is_written_is_neither_copies_nor_the_hosts) {
  TraceBuilder builder;
  for (int step = 0; step < 2; ++step) {
    const double at = 100.0 * step;
    builder.step(step + 1, {.start_us = at, .end_us = at + 100})
        .python("torch/utils/checkpoint.py(1): checkpoint", {.start_us = at + 1, .end_us = at + 8})  // of activations
        .call("cudaLaunchKernel", {.start_us = at + 3, .end_us = at + 5, .correlation = step + 1})
        .kernel("gemm", {.start_us = at + 10, .end_us = at + 30, .correlation = step + 1})
        .kernel("ncclDevKernel_AllReduce_Sum_f32", {.start_us = at + 80, .end_us = at + 90, .correlation = step + 201});
    if (step == 0) continue;
    builder.python("torch/serialization.py(941): save", {.start_us = at + 20, .end_us = at + 70})
        .python("torch/serialization.py(1200): _save", {.start_us = at + 25, .end_us = at + 65})
        .copy("Memcpy DtoH (Device -> Pageable)", {.start_us = at + 40, .end_us = at + 45, .correlation = 300});
  }
  const Part part = map_trace(StudiedTrace(builder.build()));
  EXPECT_EQ(part.collectives.checkpoint_ns, (std::vector<int64_t>{0, 40'000}));
  EXPECT_EQ(part.collectives.copy_ns, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(part.steps.checkpoint_ns, (std::vector<int64_t>{0, 40'000}));
  for (size_t s = 0; s < part.steps.size(); ++s) {
    const PartSteps& p = part.steps;
    EXPECT_EQ(p.compute_ns[s] + p.exposed_ns[s] + p.copy_ns[s] + p.input_ns[s] + p.gc_ns[s] + p.allocation_ns[s] +
                  p.sync_ns[s] + p.host_ns[s] + p.checkpoint_ns[s],
              p.end_ns[s] - p.start_ns[s]);
  }
}

TEST(Map, a_kernel_has_the_shapes_of_its_largest_call) {
  TraceBuilder builder;
  for (int call = 0; call < 3; ++call) {
    const double at = 100.0 * call;
    const int64_t id = call + 1;
    builder
        .op("aten::mm", {.start_us = at,
                         .end_us = at + 10,
                         .external_id = id,
                         .dims = call == 1 ? "[[64, 8], [8, 8]]" : "[[8, 8], [8, 8]]"})
        .call("cudaLaunchKernel", {.start_us = at + 1, .end_us = at + 2, .correlation = id, .external_id = id})
        .kernel("gemm", {.start_us = at + 10,
                         .end_us = at + 20,
                         .correlation = id,
                         .external_id = id,
                         .grid = call == 1 ? 64 : 8,
                         .block = 32});
  }
  const Part part = map_trace(StudiedTrace(builder.build()));
  ASSERT_EQ(part.kernels.size(), 1u);
  EXPECT_EQ(part.kernels[0].shapes, "[[64, 8], [8, 8]]");
}

TEST(Map, clocks_and_heat_are_those_of_the_device_that_the_rank_uses_while_its_steps_ran) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 100, .end_us = 200})
      .call("cudaLaunchKernel", {.start_us = 103, .end_us = 105, .correlation = 1})
      .kernel("gemm", {.start_us = 110, .end_us = 150, .device = 1, .correlation = 1});
  for (const double at_us : {10.0, 120.0, 140.0, 160.0}) {
    builder.counter("GPU 0 SM clock (MHz)", at_us, 1980)
        .counter("GPU 1 SM clock (MHz)", at_us, at_us < 100 ? 1980 : 1410);
  }
  builder.counter("GPU 1 temperature (C)", 130, 88);
  const Part part = map_trace(StudiedTrace(builder.build()));
  EXPECT_EQ(part.device_state, (PartDeviceState{.sm_clock_mhz = 1410, .temperature_celsius = 88}));
}

TEST(Map, the_slices_of_collectives_are_those_of_the_rows) {
  const StudiedTrace trace(two_steps());
  const Part part = map_trace(trace);
  const std::vector<SliceRef> slices = collective_slices(trace);
  ASSERT_EQ(slices.size(), part.collectives.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    ASSERT_TRUE(slices[i].on_device);
    EXPECT_EQ(trace.model().device_slices.start_ns[slices[i].row], part.collectives.start_ns[i]);
  }
}

}  // namespace
}  // namespace firelane::ranks
