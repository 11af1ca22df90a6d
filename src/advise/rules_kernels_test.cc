// Each rule on a trace with its fault, and on the same one without it.
#include <gtest/gtest.h>

#include <string>

#include "advise/rule.h"
#include "import/metadata.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

constexpr std::string_view kFp32Kernel = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3_ffma_kernel";
constexpr std::string_view kTf32Kernel = "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x64x8_tensor16x8x8_kernel";
constexpr std::string_view kBf16Kernel = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT";
constexpr std::string_view kPointwise = "void at::native::vectorized_elementwise_kernel<4, Functor<float>>";
constexpr std::string_view kSoftmax = "void (anonymous namespace)::softmax_warp_forward<float, float>";

// One op after another on an H200, each with one kernel.
class KernelProgram {
 public:
  KernelProgram() { trace_.device({.id = 0, .name = "NVIDIA H200", .total_memory_bytes = 150'000'000'000}); }

  KernelProgram& op(std::string_view name, std::string_view kernel, double kernel_us, std::string_view dims,
                    std::string_view types, std::string_view strides = {}, std::string_view concrete = {}) {
    const double at = static_cast<double>(next_) * 1000;
    trace_
        .op(name, {.start_us = at,
                   .end_us = at + 5,
                   .external_id = next_,
                   .dims = dims,
                   .types = types,
                   .strides = strides,
                   .concrete = concrete})
        .call("cudaLaunchKernel", {.start_us = at + 1, .end_us = at + 2, .correlation = next_, .external_id = next_})
        .kernel(kernel, {.start_us = at + 3, .end_us = at + 3 + kernel_us, .correlation = next_, .external_id = next_});
    ++next_;
    return *this;
  }
  // One more kernel of the op before.
  KernelProgram& and_kernel(std::string_view kernel, double kernel_us) {
    const double at = static_cast<double>(next_ - 1) * 1000;
    constexpr int64_t kOther = 1'000'000;  // correlation ids of those
    trace_
        .call("cudaLaunchKernel",
              {.start_us = at + 2, .end_us = at + 3, .correlation = kOther + next_, .external_id = next_ - 1})
        .kernel(kernel, {.start_us = at + 500,
                         .end_us = at + 500 + kernel_us,
                         .correlation = kOther + next_,
                         .external_id = next_ - 1});
    return *this;
  }
  // How the program set torch up, as our recorder notes it.
  KernelProgram& torch(std::string_view json) {
    trace_.metadata("torch", json);
    return *this;
  }
  // What the rule finds. A cut is worth the device time it takes away.
  std::vector<Finding> ask(std::string_view rule) {
    Model model = trace_.build();
    importer::interpret_metadata(model.info);
    const StudiedTrace trace(std::move(model));
    const Context context{.trace = trace,
                          .window = {0, 1'000'000'000},
                          .recorded_ns = 10'000'000,
                          .step_ns = 10'000'000,
                          .has_device_work = true,
                          .gain_ns = [&](const analyze::WhatIf& change) {
                            double saved = 0;
                            for (const analyze::DeviceCut& cut : change.device) {
                              saved += (1 - cut.keep) *
                                       static_cast<double>(trace.model().device_slices.duration_ns[cut.row]);
                            }
                            return static_cast<int64_t>(saved);
                          }};
    return find_rule(rule)->find(context);
  }

 private:
  TraceBuilder trace_;
  int64_t next_ = 1;
};

constexpr std::string_view kSquare = "[[4096, 4096], [4096, 4096]]";
constexpr std::string_view kFloats = R"(["float", "float"])";
constexpr std::string_view kHalves = R"(["c10::BFloat16", "c10::BFloat16"])";

TEST(KernelRules, fp32_matmul_without_tensor_cores_is_found) {
  const auto findings = KernelProgram().op("aten::mm", kFp32Kernel, 2700, kSquare, kFloats).ask("fp32-matmul");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].cost_ns, 2'700'000);
  EXPECT_DOUBLE_EQ(findings[0].share_of_step, 0.27);
  // 137.4 GFLOP at 75% of 494.5 TFLOP/s: 371 us stay at best, 556 at 50%.
  EXPECT_NEAR(static_cast<double>(findings[0].gain.low_ns), 2'144'000, 1'000);
  EXPECT_NEAR(static_cast<double>(findings[0].gain.high_ns), 2'329'000, 1'000);
  EXPECT_EQ(findings[0].slices.size(), 1u);
  EXPECT_TRUE(KernelProgram().op("aten::mm", kTf32Kernel, 500, kSquare, kFloats).ask("fp32-matmul").empty());
  EXPECT_TRUE(KernelProgram().op("aten::mm", kFp32Kernel, 2, "[[8, 8], [8, 8]]", kFloats).ask("fp32-matmul").empty());
}

TEST(KernelRules, float64_takes_twice_as_long_and_its_casts_would_not_be_there) {
  constexpr std::string_view kDims = "[[8192, 2048], [8192, 2048]]";
  constexpr std::string_view kDoubles = R"(["double", "double"])";
  const auto likely = [](const std::vector<Finding>& findings) {
    return findings.empty() ? 0 : static_cast<double>(findings[0].gain.middle_ns()) / 1000;
  };
  const auto ask = [&](std::string_view op, std::string_view types) {
    return likely(KernelProgram().op(op, "elementwise_kernel", 100, kDims, types).ask("fp64-compute"));
  };
  EXPECT_NEAR(ask("aten::mul", kDoubles), 50, 1);
  EXPECT_NEAR(ask("aten::copy_", R"(["double", "float", "Scalar"])"), 100, 1);
  EXPECT_NEAR(ask("aten::copy_", R"(["float", "double", "Scalar"])"), 100, 1);
  EXPECT_NEAR(ask("aten::copy_", R"(["double", "c10::BFloat16", "Scalar"])"), 50, 1) << "a cast to float32 stays";
  EXPECT_EQ(ask("aten::mul", kFloats), 0);
}

TEST(KernelRules, odd_sizes_of_16_bit_matmuls_are_found) {
  const auto ask = [](double kernel_us, std::string_view dims) {
    return KernelProgram().op("aten::mm", kBf16Kernel, kernel_us, dims, kHalves).ask("tensor-cores-unused");
  };
  constexpr std::string_view kOdd = "[[4096, 50257], [50257, 4096]]";
  const auto findings = ask(9000, kOdd);
  ASSERT_EQ(findings.size(), 1u);
  // 1.686 TFLOP at 50% and 75% of 989.5 TFLOP/s: 3408 and 2272 us stay.
  EXPECT_NEAR(static_cast<double>(findings[0].gain.low_ns), 5'592'000, 2'000);
  EXPECT_NEAR(static_cast<double>(findings[0].gain.high_ns), 6'728'000, 2'000);
  EXPECT_TRUE(ask(2200, kOdd).empty()) << "as fast as even sizes would be";
  EXPECT_TRUE(ask(9000, kSquare).empty());
}

TEST(KernelRules, work_belongs_to_the_step_that_launched_it) {
  // The device is behind: the host's steps are over before it begins.
  TraceBuilder trace;
  trace.device({.id = 0, .name = "NVIDIA H200"})
      .op("aten::mm", {.start_us = 10, .end_us = 15, .external_id = 1, .dims = kSquare, .types = kFloats})
      .call("cudaLaunchKernel", {.start_us = 11, .end_us = 12, .correlation = 1, .external_id = 1})
      .kernel(kFp32Kernel, {.start_us = 5000, .end_us = 7700, .correlation = 1, .external_id = 1});
  const StudiedTrace studied(trace.build());
  const auto found_in = [&](analyze::Interval window) {
    const Context context{
        .trace = studied, .window = window, .step_ns = 1'000'000, .gain_ns = [](const analyze::WhatIf&) {
          return int64_t{1000};
        }};
    return find_rule("fp32-matmul")->find(context).size();
  };
  EXPECT_EQ(found_in({0, 1'000'000}), 1u);
  EXPECT_EQ(found_in({1'000'000, 9'000'000}), 0u);
}

TEST(KernelRules, attention_by_hand_is_found) {
  const auto by_hand = [](std::string_view middle) {
    return KernelProgram()
        .op("aten::bmm", kBf16Kernel, 50, "[[8, 64, 64], [8, 64, 64]]", kHalves)
        .op("aten::div", kPointwise, 10, "[[8, 64, 64], []]", kHalves)
        .op(middle, kSoftmax, 20, "[[8, 64, 64], []]", kHalves)
        .op("aten::bmm", kBf16Kernel, 50, "[[8, 64, 64], [8, 64, 64]]", kHalves)
        .ask("attention-unfused");
  };
  const auto findings = by_hand("aten::_softmax");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].cost_ns, 30'000);
  EXPECT_EQ(findings[0].gain.high_ns, 30'000 + 64'000) << "and the larger part of the two products";
  EXPECT_EQ(findings[0].gain.low_ns, 25'500 + 30'000);
  EXPECT_TRUE(by_hand("aten::relu").empty());
}

TEST(KernelRules, chains_of_pointwise_kernels_are_found) {
  const auto findings = KernelProgram()
                            .op("aten::gelu", kPointwise, 30, "[[1000000]]", R"(["float"])")
                            .op("aten::mul", kPointwise, 20, "[[1000000]]", R"(["float"])")
                            .ask("pointwise-unfused");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].cost_ns, 50'000);
  // One kernel reads and writes 4 MB each: 2.4 us at 70% of 4800 GB/s.
  EXPECT_NEAR(static_cast<double>(findings[0].gain.low_ns), 47'600, 100);
  EXPECT_EQ(findings[0].cause, "fusion") << "device time is saved: not the host's overhead";
  EXPECT_TRUE(
      KernelProgram().op("aten::gelu", kPointwise, 30, "[[1000000]]", R"(["float"])").ask("pointwise-unfused").empty());
}

TEST(KernelRules, a_cast_there_and_back_is_found) {
  const auto casts = [](std::string_view second_types) {
    return KernelProgram()
        .op("aten::copy_", kPointwise, 30, "[[512], [512]]", R"(["c10::BFloat16", "float"])")
        .op("aten::copy_", kPointwise, 20, "[[512], [512]]", second_types)
        .ask("dtype-ping-pong");
  };
  ASSERT_EQ(casts(R"(["float", "c10::BFloat16"])").size(), 1u);
  EXPECT_EQ(casts(R"(["float", "c10::BFloat16"])")[0].cost_ns, 50'000);
  EXPECT_TRUE(casts(R"(["c10::BFloat16", "float"])").empty());
}

TEST(KernelRules, a_bias_before_batch_norm_is_found) {
  const auto network = [](std::string_view conv_dims) {
    TraceBuilder trace;
    trace.op("aten::conv2d", {.start_us = 0, .end_us = 20, .dims = conv_dims})
        .op("aten::add_", {.start_us = 5, .end_us = 10, .external_id = 1})
        .call("cudaLaunchKernel", {.start_us = 6, .end_us = 7, .correlation = 1, .external_id = 1})
        .kernel(kPointwise, {.start_us = 10, .end_us = 14, .correlation = 1, .external_id = 1})
        .op("aten::batch_norm", {.start_us = 30, .end_us = 40});
    const StudiedTrace studied(trace.build());
    const Context context{
        .trace = studied, .window = {0, 1'000'000}, .step_ns = 40'000, .gain_ns = [](const analyze::WhatIf&) {
          return int64_t{4000};
        }};
    return find_rule("conv-bias-before-batch-norm")->find(context);
  };
  EXPECT_EQ(network("[[2, 3, 16, 16], [8, 3, 3, 3], [8], [], [], [], []]").size(), 1u);
  EXPECT_TRUE(network("[[2, 3, 16, 16], [8, 3, 3, 3], [], [], [], [], []]").empty());
}

TEST(KernelRules, the_gradient_of_a_bias_before_batch_norm_counts_with_it) {
  const auto cost_of = [](int64_t backward_of) {
    TraceBuilder trace;
    trace
        .op("aten::conv2d",
            {.start_us = 0, .end_us = 20, .sequence_number = 5, .dims = "[[2, 3, 16, 16], [8, 3, 3, 3], [8], []]"})
        .op("aten::convolution", {.start_us = 4, .end_us = 18, .sequence_number = 7})
        .op("aten::add_", {.start_us = 5, .end_us = 10, .external_id = 1})
        .call("cudaLaunchKernel", {.start_us = 6, .end_us = 7, .correlation = 1, .external_id = 1})
        .kernel(kPointwise, {.start_us = 10, .end_us = 14, .correlation = 1, .external_id = 1})
        .op("aten::batch_norm", {.start_us = 30, .end_us = 40})
        .op("ConvolutionBackward0", {.start_us = 50, .end_us = 70, .sequence_number = backward_of})
        .op("aten::sum", {.start_us = 55, .end_us = 60, .external_id = 2})
        .call("cudaLaunchKernel", {.start_us = 56, .end_us = 57, .correlation = 2, .external_id = 2})
        .kernel("void at::native::reduce_kernel<128, 4, Sum>",
                {.start_us = 60, .end_us = 63, .correlation = 2, .external_id = 2});
    const StudiedTrace studied(trace.build());
    const Context context{
        .trace = studied, .window = {0, 1'000'000}, .step_ns = 40'000, .gain_ns = [](const analyze::WhatIf&) {
          return int64_t{4000};
        }};
    return find_rule("conv-bias-before-batch-norm")->find(context).at(0).cost_ns;
  };
  EXPECT_EQ(cost_of(7), 4'000 + 3'000);
  EXPECT_EQ(cost_of(8), 4'000) << "of another convolution";
}

TEST(KernelRules, layouts_that_cudnn_changes_around_a_convolution_are_layout_copies) {
  const auto ask = [](std::string_view kernel) {
    return KernelProgram().op("aten::cudnn_convolution", kernel, 100, kSquare, kHalves).ask("layout-copies");
  };
  const auto findings = ask("void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, float, true>");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].gain.low_ns, 90'000);
  EXPECT_EQ(findings[0].gain.high_ns, 100'000);
  EXPECT_TRUE(ask("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc").empty());
}

TEST(KernelRules, deterministic_modes_are_named_where_a_device_computes) {
  const auto title = [](std::string_view torch) -> std::string {
    const auto findings =
        KernelProgram().op("aten::mm", kBf16Kernel, 100, kSquare, kHalves).torch(torch).ask("deterministic-algorithms");
    return findings.empty() ? "" : findings[0].title;
  };
  EXPECT_TRUE(title(R"({"deterministic_algorithms":true})").starts_with("torch.use_deterministic_algorithms(True)"));
  EXPECT_TRUE(title(R"({"cudnn_deterministic":true})").starts_with("cudnn.deterministic = True"));
  EXPECT_EQ(title(R"({"deterministic_algorithms":false,"cudnn_deterministic":false})"), "");
  EXPECT_EQ(title("{}"), "");
}

TEST(KernelRules, cudnn_may_try_its_algorithms_for_convolutions_far_from_the_peak) {
  // 2.4 GFLOP as below, at 989 TFLOP/s 2.4 us: at least 3 us for its 8 MB.
  constexpr std::string_view kImages = "[[8, 64, 64, 64], [64, 64, 3, 3], [], [], [], []]";
  constexpr std::string_view kTypes = R"(["c10::BFloat16", "c10::BFloat16", "", "", "", ""])";
  const auto count = [&](double kernel_us, std::string_view torch) {
    return KernelProgram()
        .op("aten::cudnn_convolution", "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc", kernel_us,
            kImages, kTypes, {}, R"(["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"])")
        .torch(torch)
        .ask("cudnn-benchmark")
        .size();
  };
  EXPECT_EQ(count(200, R"({"cudnn_benchmark":false})"), 1u);
  EXPECT_EQ(count(200, R"({"cudnn_benchmark":true})"), 0u);
  EXPECT_EQ(count(200, "{}"), 0u) << "not recorded by us: how it was set is not known";
  EXPECT_EQ(count(200, R"({"cudnn_benchmark":false,"cudnn_deterministic":true})"), 0u);
  EXPECT_EQ(count(6, R"({"cudnn_benchmark":false})"), 0u) << "as fast as it can be";
}

TEST(KernelRules, all_kernels_of_a_convolution_without_tensor_cores_go_with_it) {
  // 8 images of 64 channels, 3 x 3: 2 x 8 x 64 x 64 x 9 x 64 x 64 = 2.4 GFLOP, 6.5 us at 75% of 494.5 TFLOP/s.
  constexpr std::string_view kImages = "[[8, 64, 64, 64], [64, 64, 3, 3], [], [], [], []]";
  constexpr std::string_view kTypes = R"(["float", "float", "", "", "", ""])";
  const auto findings =
      KernelProgram()
          .op("aten::cudnn_convolution", "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_ffma_kernel",
              100, kImages, kTypes, {}, R"(["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"])")
          .and_kernel("void cudnn::engines_precompiled::nhwcToNchwKernel<float, float, float>", 60)
          .ask("fp32-matmul");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].cost_ns, 160'000) << "the change of layout too";
  EXPECT_NEAR(static_cast<double>(findings[0].gain.high_ns), 160'000 - 6'500, 500);
}

TEST(KernelRules, batch_norms_over_nchw_count_with_the_layout) {
  // 16 images of 64 x 128 x 128 in bf16, 33.6 MB: in channels_last three passes at 33% of 4800 GB/s, 64 us.
  constexpr std::string_view kImages = "[[16, 64, 128, 128]]";
  constexpr std::string_view kType = R"(["c10::BFloat16"])";
  constexpr std::string_view kLayout = "void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, float, true>";
  const auto gain_ns = [&](std::string_view norm) {
    const auto findings = KernelProgram()
                              .op("aten::cudnn_convolution", kLayout, 10, kImages, kType)
                              .op("aten::native_batch_norm", norm, 300, kImages, kType)
                              .ask("layout-copies");
    return findings.empty() ? 0.0 : static_cast<double>(findings[0].gain.high_ns);
  };
  EXPECT_NEAR(gain_ns("void at::native::batch_norm_transform_input_kernel<c10::BFloat16>"), 10'000 + 236'400, 500);
  EXPECT_NEAR(gain_ns("void at::native::batch_norm_transform_input_channels_last_kernel<c10::BFloat16>"), 10'000, 1);
}

TEST(KernelRules, images_in_fp32_count_with_half_of_their_bytes) {
  constexpr std::string_view kImages = "[[16, 64, 128, 128]]";
  constexpr std::string_view kType = R"(["float"])";
  const auto findings = KernelProgram()
                            .op("aten::cudnn_convolution",
                                "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float>", 10, kImages, kType)
                            .op("aten::cudnn_convolution",
                                "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc", 100, kImages, kType)
                            .op("aten::relu", kPointwise, 40, kImages, kType)
                            .ask("layout-copies");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].gain.high_ns, 10'000 + 50'000 + 20'000);
  EXPECT_NE(findings[0].try_code.find("autocast"), std::string::npos);
}

TEST(KernelRules, attention_in_fp32_with_a_mask_is_found) {
  // What the mask takes is made between the products; its causal half need not be computed.
  constexpr std::string_view kScores = "[[64, 512, 512]]";
  KernelProgram program;
  program.op("aten::bmm", "gemm", 100, kSquare, kHalves);
  for (const std::string_view op : {"aten::mul", "aten::fill_", "aten::tril", "aten::bitwise_not", "aten::copy_",
                                    "aten::masked_fill_", "aten::copy_"}) {
    program.op(op, kPointwise, 10, kScores, kFloats);
  }
  program.op("aten::_softmax", kSoftmax, 30, kScores, kFloats).op("aten::copy_", kPointwise, 10, kScores, kFloats);
  const auto findings = program.op("aten::bmm", "gemm", 100, kSquare, kHalves).ask("attention-unfused");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].cost_ns, 110'000);
  EXPECT_EQ(findings[0].gain.high_ns, 110'000 + 160'000);
}

TEST(KernelRules, every_rule_explains_itself) {
  for (const Rule& rule : all_rules()) {
    EXPECT_GT(rule.explanation.size(), 100u) << rule.id;
    EXPECT_EQ(find_rule(rule.id), &rule) << rule.id << " is there twice";
  }
}

}  // namespace
}  // namespace firelane::advise
