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
