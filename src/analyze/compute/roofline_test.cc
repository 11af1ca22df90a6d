// Rooflines by hand: on an H200 (989.5 TFLOP/s in bf16, 4800 GB/s).
#include "analyze/compute/roofline.h"

#include <gtest/gtest.h>

#include "analyze/steps/find_steps.h"
#include "model/raw.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

constexpr std::string_view kMatmulKernel = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT";
constexpr std::string_view kAddKernel =
    "void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<c10::BFloat16>>";

TraceBuilder& launch(TraceBuilder& trace, std::string_view op, std::string_view kernel, double at_us, double kernel_us,
                     int64_t id, std::string_view dims, std::string_view types) {
  return trace.op(op, {.start_us = at_us, .end_us = at_us + 5, .external_id = id, .dims = dims, .types = types})
      .call("cudaLaunchKernel", {.start_us = at_us + 1, .end_us = at_us + 2, .correlation = id, .external_id = id})
      .kernel(kernel, {.start_us = at_us + 3, .end_us = at_us + 3 + kernel_us, .correlation = id, .external_id = id});
}

TEST(Roofline, a_matmul_is_bound_by_compute_and_an_addition_by_memory) {
  TraceBuilder trace;
  trace.device({.id = 0, .name = "NVIDIA H200"}).step(1, {.start_us = 0, .end_us = 4000});
  // 2 * 4096^3 FLOPs = 137.4 GFLOP, 138.9 us at the peak; 100.7 MB.
  launch(trace, "aten::mm", kMatmulKernel, 0, 200, 1, "[[4096, 4096], [4096, 4096]]",
         R"(["c10::BFloat16", "c10::BFloat16"])");
  // 3 * 33.55 MB = 20.97 us at the bandwidth.
  launch(trace, "aten::add", kAddKernel, 1000, 30, 2, "[[4096, 4096], [4096, 4096], []]",
         R"(["c10::BFloat16", "c10::BFloat16", "Scalar"])");
  const Model model = trace.build();
  const Roofline result = roofline_of(model, steps_of(model));
  ASSERT_EQ(result.rows.size(), 2u);
  const RooflineRow& mm = result.rows[0];
  EXPECT_EQ(mm.flops, 137'438'953'472);
  EXPECT_EQ(mm.bytes, 3 * 2 * 4096 * 4096);
  EXPECT_EQ(mm.bound, KernelBound::kCompute);
  EXPECT_EQ(mm.precision, Precision::kBf16);
  EXPECT_EQ(mm.tensor_cores, TensorCores::kYes);
  EXPECT_TRUE(mm.aligned);
  EXPECT_NEAR(mm.roof_percent(), 100 * 138.9 / 200, 0.1);
  const RooflineRow& add = result.rows[1];
  EXPECT_EQ(add.bytes, 3 * 2 * 4096 * 4096);
  EXPECT_EQ(add.bound, KernelBound::kMemory);
  EXPECT_NEAR(add.roof_percent(), 100 * 20.97 / 30, 0.1);
  EXPECT_EQ(result.matrix_ns, 200'000);
  EXPECT_EQ(result.tensor_core_ns, 200'000);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_NEAR(result.steps[0].mfu_percent, 100 * 138.9 / 4000, 0.1);
}

TEST(Roofline, a_tiny_matmul_is_bound_by_latency) {
  TraceBuilder trace;
  trace.device({.id = 0, .name = "NVIDIA H200"});
  launch(trace, "aten::mm", kMatmulKernel, 0, 2, 1, "[[64, 64], [64, 64]]", R"(["c10::BFloat16", "c10::BFloat16"])");
  const Model model = trace.build();
  EXPECT_EQ(roofline_of(model, steps_of(model)).rows.at(0).bound, KernelBound::kLatency);
}

TEST(Roofline, odd_dimensions_are_not_aligned) {
  TraceBuilder trace;
  launch(trace, "aten::mm", kMatmulKernel, 0, 20, 1, "[[4096, 4095], [4095, 4096]]",
         R"(["c10::BFloat16", "c10::BFloat16"])");
  const Model model = trace.build();
  const Roofline result = roofline_of(model, steps_of(model));
  EXPECT_FALSE(result.rows.at(0).aligned);
  EXPECT_EQ(result.peaks, nullptr);  // the trace names no device
  EXPECT_EQ(result.rows[0].bound, KernelBound::kUnknown);
}

TEST(Roofline, kernels_below_the_op_with_the_shapes_belong_to_it) {
  TraceBuilder trace;
  trace
      .op("aten::mm",
          {.start_us = 0, .end_us = 10, .external_id = 1, .dims = "[[8, 8], [8, 8]]", .types = R"(["float", "float"])"})
      .op("vendor::gemm_impl", {.start_us = 1, .end_us = 9, .external_id = 2})
      .call("cudaLaunchKernel", {.start_us = 2, .end_us = 3, .correlation = 5, .external_id = 2})
      .kernel("ampere_sgemm_128x64_nn", {.start_us = 5, .end_us = 8, .correlation = 5, .external_id = 2});
  const Model model = trace.build();
  const Roofline result = roofline_of(model, steps_of(model));
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_EQ(model.text(result.rows[0].op), "aten::mm");
  EXPECT_EQ(result.rows[0].flops, 2 * 8 * 8 * 8);
  EXPECT_EQ(result.rows[0].tensor_cores, TensorCores::kNo);
}

// 4 MiB: the device's memory is written, or read, and the other side is the host's.
TEST(Roofline, a_copy_between_host_and_device_does_not_count_both_its_sides) {
  const auto bytes_of = [](std::string_view copy, int64_t bytes) {
    TraceBuilder trace;
    trace.device({.id = 0, .name = "NVIDIA H200"});
    for (int64_t id = 1; id <= 2; ++id) {
      const double at_us = 1000.0 * static_cast<double>(id);
      trace
          .op("aten::copy_", {.start_us = at_us,
                              .end_us = at_us + 5,
                              .external_id = id,
                              .dims = "[[1024, 1024], [1024, 1024], []]",
                              .types = R"(["float", "float", "Scalar"])"})
          .call("cudaMemcpyAsync", {.start_us = at_us + 1, .end_us = at_us + 2, .correlation = id, .external_id = id})
          .copy(copy,
                {.start_us = at_us + 3, .end_us = at_us + 103, .correlation = id, .external_id = id, .bytes = bytes});
    }
    const Model model = trace.build();
    return roofline_of(model, steps_of(model)).rows.at(0).bytes;
  };
  constexpr int64_t kTensor = 4 * 1024 * 1024;
  EXPECT_EQ(bytes_of("Memcpy HtoD (Pinned -> Device)", kTensor), 2 * kTensor);
  EXPECT_EQ(bytes_of("Memcpy DtoH (Device -> Pageable)", kTensor), 2 * kTensor);
  EXPECT_EQ(bytes_of("Memcpy DtoD (Device -> Device)", kTensor), 2 * 2 * kTensor) << "read and written there";
  EXPECT_EQ(bytes_of("Memcpy HtoD (Pinned -> Device)", kNoNumber), kNoNumber);
}

TEST(Roofline, work_without_an_op_is_counted) {
  const Model model = TraceBuilder().kernel("gemm", {.start_us = 0, .end_us = 4}).build();
  const Roofline result = roofline_of(model, steps_of(model));
  EXPECT_EQ(result.work_ns, 4000);
  EXPECT_EQ(result.without_op_ns, 4000);
  EXPECT_TRUE(result.rows.empty());
}

// One step with shapes, one of an op without, one of a CUDA graph's kernel, and one without work.
TEST(Roofline, flops_that_are_not_known_are_not_zero) {
  TraceBuilder trace;
  trace.device({.id = 0, .name = "NVIDIA H200"});
  for (int i = 0; i < 4; ++i) trace.step(i, {.start_us = 1000.0 * i, .end_us = 1000.0 * i + 1000});
  const std::string_view types = R"(["c10::BFloat16", "c10::BFloat16"])";
  launch(trace, "aten::mm", kMatmulKernel, 0, 200, 1, "[[64, 64], [64, 64]]", types);
  launch(trace, "aten::mm", kMatmulKernel, 1000, 200, 2, "", "");
  trace.kernel(kMatmulKernel, {.start_us = 2100, .end_us = 2300});
  const Model model = trace.build();
  const Roofline result = roofline_of(model, steps_of(model));
  ASSERT_EQ(result.steps.size(), 4u);
  EXPECT_EQ(result.steps[0].flops, 2 * 64 * 64 * 64);
  for (const size_t step : {1u, 2u}) {
    EXPECT_EQ(result.steps[step].flops, kNoNumber) << step;
    EXPECT_EQ(result.steps[step].mfu_percent, -1) << step;
  }
  EXPECT_EQ(result.steps[3].flops, 0);
  EXPECT_EQ(result.steps[3].mfu_percent, 0);
  EXPECT_EQ(result.whole.flops, 2 * 64 * 64 * 64);
  EXPECT_EQ(result.ops_with_shapes, 1);
  EXPECT_EQ(result.ops_without_shapes, 1);
}

// What XLA counted, of a TPU whose ops have no host op.
TEST(Roofline, ops_that_the_compiler_counted_have_rows) {
  RawTrace raw;
  RawPool& pool = raw.pools.emplace_back();
  RawPart& part = raw.parts.emplace_back();
  raw.info.accelerator = Accelerator::kTpu;
  raw.info.devices.push_back({.id = 0, .name = "TPU v6 Lite"});
  const LaneId lane = pool.lane({.number = 0}, {.number = 3});
  for (int i = 0; i < 2; ++i) {
    part.kernel_details.push_back({.flops = 918'000'000,  // 1 us at the peak
                                   .bytes_accessed = 1000,
                                   .op_category = pool.strings.intern("convolution fusion")});
    part.device_slices.push_back({.start_ns = i * 10'000,
                                  .duration_ns = 4'000,
                                  .lane = lane,
                                  .name = pool.strings.intern("fusion.1"),
                                  .kind = DeviceKind::kKernel,
                                  .detail = static_cast<Row>(i),
                                  .device = 0});
  }
  const Model model = assemble(std::move(raw));
  const Roofline result = roofline_of(model, steps_of(model));
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_EQ(result.rows[0].calls, 2);
  EXPECT_EQ(result.rows[0].flops, 2 * 918'000'000);
  EXPECT_NEAR(result.rows[0].roof_percent(), 25, 0.1);
  EXPECT_EQ(result.without_op_ns, 0);
  EXPECT_EQ(result.row_of_work, (std::vector<uint32_t>{0, 0}));
}

// An addition of 2 ms and a matmul of 2 ms, and samples of 100 us; the addition's data would fit a cache.
Roofline measured(double dram_in_add, double tensor_in_matmul) {
  TraceBuilder trace;
  trace.device({.id = 0, .name = "NVIDIA H200"}).step(1, {.start_us = 0, .end_us = 5000});
  launch(trace, "aten::add", kAddKernel, 0, 2000, 1, "[[4096, 4096], [4096, 4096], []]",
         R"(["c10::BFloat16", "c10::BFloat16", "Scalar"])");
  launch(trace, "aten::mm", kMatmulKernel, 2100, 2001, 2, "[[4, 4096], [4096, 4096]]",
         R"(["c10::BFloat16", "c10::BFloat16"])");
  for (int i = 0; i < 45; ++i) {
    const double at = 100.0 * i;
    const bool adds = at < 2000;
    trace.gpu_counter(0, "dram__throughput.avg.pct_of_peak_sustained_elapsed", at, adds ? dram_in_add : 5);
    trace.gpu_counter(0, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", at,
                      adds ? 0 : tensor_in_matmul);
  }
  const Model model = trace.build();
  return roofline_of(model, steps_of(model));
}

TEST(Roofline, hardware_counters_decide_what_bounds_an_op) {
  const Roofline result = measured(80, 75);
  const RooflineRow& mm = result.rows[0];
  EXPECT_EQ(mm.bound, KernelBound::kCompute);  // by its shapes it would be memory's
  EXPECT_EQ(mm.roof, KernelBound::kMemory);
  EXPECT_TRUE(mm.is_measured);
  EXPECT_DOUBLE_EQ(mm.use.of(HardwareUnit::kTensor), 75);
  const RooflineRow& add = result.rows[1];
  EXPECT_EQ(add.bound, KernelBound::kMemory);
  EXPECT_TRUE(add.is_measured);
  EXPECT_DOUBLE_EQ(add.use.of(HardwareUnit::kDram), 80);  // the sample in which both ran is nobody's
}

TEST(Roofline, an_estimate_that_counters_contradict_is_withdrawn) {
  const Roofline result = measured(10, 20);
  EXPECT_EQ(result.rows[1].bound, KernelBound::kUnknown);
  EXPECT_FALSE(result.rows[1].is_measured);
}

TEST(Roofline, counters_between_the_two_leave_the_estimate) {
  const Roofline result = measured(45, 20);
  EXPECT_EQ(result.rows[1].bound, KernelBound::kMemory);
  EXPECT_FALSE(result.rows[1].is_measured);
}

}  // namespace
}  // namespace firelane::analyze
