// What limits a program and its parts, by hand.
#include "analyze/verdict/bound.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

TEST(Bound, a_group_is_limited_by_the_longer_of_host_and_device) {
  EXPECT_EQ(group_limit(100, 79, 79), Limit::kOverhead);
  EXPECT_EQ(group_limit(100, 80, 80), Limit::kMixed);
  EXPECT_EQ(group_limit(100, 125, 0), Limit::kMixed);
  EXPECT_EQ(group_limit(100, 126, 63), Limit::kCompute);
  EXPECT_EQ(group_limit(100, 126, 62), Limit::kMemory);
  EXPECT_EQ(group_limit(5, 0, 0), Limit::kOverhead);
  EXPECT_EQ(group_limit(0, 0, 0), Limit::kUnknown);
}

TEST(Bound, a_matrix_product_of_few_rows_is_limited_by_memory) {
  TraceBuilder builder;
  builder.device({.id = 0, .name = "NVIDIA H200"});
  const auto matmul = [&](double at, int64_t id, std::string_view dims) {
    builder.op("aten::mm", {.start_us = at,
                            .end_us = at + 10,
                            .external_id = id,
                            .dims = dims,
                            .types = R"(["c10::BFloat16", "c10::BFloat16"])"});
    builder.call("cudaLaunchKernel", {.start_us = at + 1, .end_us = at + 2, .correlation = id, .external_id = id});
    builder.kernel("gemm", {.start_us = at + 2, .end_us = at + 302, .correlation = id, .external_id = id});
  };
  matmul(0, 1, "[[4, 4096], [4096, 4096]]");       // 34 MB at 4.8 TB/s: 7 us; 134 MFLOP at 989 TFLOP/s: 0.1 us
  matmul(400, 2, "[[4096, 4096], [4096, 4096]]");  // 101 MB: 21 us; 137 GFLOP: 139 us
  const Model model = builder.build();
  const std::vector<Limit> limits = work_limits(model, roofline_of(model, steps_of(model)));
  EXPECT_EQ(limits, (std::vector<Limit>{Limit::kMemory, Limit::kCompute}));
}

// Four steps of twenty operators of 100 us, each with a kernel of `kernel_us`.
Study steps_of_kernels(double kernel_us) {
  TraceBuilder builder;
  int64_t id = 1;
  for (int step = 0; step < 4; ++step) {
    for (int op = 0; op < 20; ++op, ++id) {
      const double at = 2000.0 * step + 100.0 * op;
      builder.op("aten::mm", {.start_us = at, .end_us = at + 100, .external_id = id});
      builder.call("cudaLaunchKernel", {.start_us = at + 1, .end_us = at + 8, .correlation = id, .external_id = id});
      builder.kernel("gemm", {.start_us = at + 9, .end_us = at + 9 + kernel_us, .correlation = id, .external_id = id});
    }
    builder.step(step, {.start_us = 2000.0 * step, .end_us = 2000.0 * step + 2000});
  }
  return study(builder.build());
}

TEST(Bound, a_host_that_takes_about_as_long_as_its_device_is_not_the_limit_alone) {
  const Study idle = steps_of_kernels(20);
  EXPECT_EQ(idle.bound.limit, Limit::kOverhead);
  EXPECT_NEAR(idle.bound.device_busy, 0.22, 0.03);
  // The critical path is all host here, too; but without it a step would still take 80 of 100.
  const Study balanced = steps_of_kernels(80);
  EXPECT_EQ(balanced.bound.limit, Limit::kMixed);
  EXPECT_GT(balanced.bound.shares[static_cast<size_t>(Limit::kOverhead)], 0.9);
  EXPECT_GT(balanced.bound.device_busy, 0.8);
}

TEST(Bound, a_path_of_which_most_is_not_known_names_no_limit) {
  const std::vector<Limit> limits = {Limit::kCompute};
  const auto limit_if_known = [&](int64_t known_ns) {
    CriticalPath path;
    path.pieces.push_back({.start_ns = 0, .end_ns = known_ns, .path_class = PathClass::kCompute, .row = 0});
    path.pieces.push_back({.start_ns = known_ns, .end_ns = 1000, .path_class = PathClass::kUnknown});
    return BoundJudge(limits, 0).of(path, IntervalSet({{0, known_ns}}), 0, 1000).limit;
  };
  EXPECT_EQ(limit_if_known(700), Limit::kCompute);
  EXPECT_EQ(limit_if_known(400), Limit::kUnknown);  // it was "mixed: no single bottleneck"
}

}  // namespace
}  // namespace firelane::analyze
