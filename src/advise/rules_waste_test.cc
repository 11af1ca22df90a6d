// Each rule on a trace with its fault, and on the same one without it.
#include <gtest/gtest.h>

#include <string>

#include "advise/rule.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

constexpr std::string_view kMatmulKernel = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT";
constexpr std::string_view kAttentionKernel = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma";
constexpr std::string_view kFillKernel = "void at::native::vectorized_elementwise_kernel<4, Functor<float>>";

std::vector<Finding> ask_of(TraceBuilder& trace, std::string_view rule) {
  const StudiedTrace studied(trace.build());
  const Context context{.trace = studied,
                        .window = {0, 1'000'000'000},
                        .step_ns = 1'000'000,
                        .has_device_work = true,
                        .gain_ns = [&](const analyze::WhatIf& change) {
                          double saved = 0;
                          for (const analyze::DeviceCut& cut : change.device) {
                            saved += (1 - cut.keep) *
                                     static_cast<double>(studied.model().device_slices.duration_ns[cut.row]);
                          }
                          for (const analyze::HostCut& cut : change.host) {
                            saved += (1 - cut.keep) * static_cast<double>(cut.end_ns - cut.start_ns);
                          }
                          return static_cast<int64_t>(saved);
                        }};
  return find_rule(rule)->find(context);
}

// Twenty ops of 10 us; with gradients each makes a node, so that the next one sees a higher number.
TraceBuilder forward(bool gradients) {
  TraceBuilder trace;
  for (int i = 0; i < 20; ++i) {
    trace.op("aten::linear", {.start_us = i * 20.0, .end_us = i * 20.0 + 10, .sequence_number = gradients ? i : 7});
  }
  return trace;
}

TEST(WasteRules, a_graph_that_no_backward_uses) {
  TraceBuilder faulty = forward(true);
  const auto findings = ask_of(faulty, "unused-gradients");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].title,
            "the forward pass builds an autograd graph (19 nodes a step), but no backward ever runs");
  EXPECT_GT(findings[0].gain.low_ns, 0);
  TraceBuilder mended = forward(false);
  EXPECT_TRUE(ask_of(mended, "unused-gradients").empty()) << "numbers that stay: nothing was built";
  TraceBuilder training = forward(true);
  training.op("autograd::engine::evaluate_function: MmBackward0", {.start_us = 500, .end_us = 510});
  EXPECT_TRUE(ask_of(training, "unused-gradients").empty());
}

// The backward of two layers; the optimizer updates the first, or both.
TraceBuilder two_layers(bool both, bool trained_last = false) {
  TraceBuilder trace;
  trace.device({.id = 0, .name = "NVIDIA H200", .total_memory_bytes = 150'000'000'000});
  const auto layer = [&](double at, int64_t id, std::string_view mm, std::string_view gradient) {
    trace.op("autograd::engine::evaluate_function: MmBackward0", {.start_us = at, .end_us = at + 20})
        .op("aten::mm",
            {.start_us = at + 1, .end_us = at + 10, .external_id = id, .dims = mm, .types = R"(["float", "float"])"})
        .call("cudaLaunchKernel", {.start_us = at + 2, .end_us = at + 3, .correlation = id, .external_id = id})
        .kernel(kMatmulKernel, {.start_us = at + 5, .end_us = at + 35, .correlation = id, .external_id = id})
        .op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
            {.start_us = at + 40, .end_us = at + 50})
        .op("aten::detach", {.start_us = at + 42, .end_us = at + 44, .dims = gradient, .types = R"(["float"])"});
  };
  layer(trained_last ? 200 : 100, 1, "[[16, 100], [100, 8]]", "[[16, 8]]");
  layer(trained_last ? 100 : 200, 2, "[[64, 100], [100, 32]]", "[[64, 32]]");
  trace.annotation("Optimizer.step#AdamW.step", {.start_us = 300, .end_us = 400})
      .op("aten::_fused_adamw_",
          {.start_us = 310,
           .end_us = 320,
           .dims = both ? "[[[16, 8], [64, 32]], [[16, 8], [64, 32]]]" : "[[[16, 8]], [[16, 8]]]",
           .types = R"(["TensorList", "TensorList"])"});
  return trace;
}

TEST(WasteRules, gradients_that_no_optimizer_uses) {
  TraceBuilder faulty = two_layers(false);
  const auto findings = ask_of(faulty, "unused-gradients");
  ASSERT_EQ(findings.size(), 1u);
  // The matmul of the layer that is not trained; of the host, the nodes that compute (20 us) and accumulate (10 us),
  // and the engine's way from one to the other (20 us): what follows the last gradient that is used is for nobody.
  EXPECT_EQ(findings[0].gain.high_ns, 30'000 + 20'000 + 10'000 + 20'000);
  EXPECT_EQ(findings[0].gain.low_ns, 30'000 + 14'000 + 7'000 + 20'000);
  EXPECT_TRUE(findings[0].title.starts_with("gradients of 1 parameter are computed that no optimizer uses"))
      << findings[0].title;
  TraceBuilder mended = two_layers(true);
  EXPECT_TRUE(ask_of(mended, "unused-gradients").empty());
}

TEST(WasteRules, on_the_way_to_a_gradient_that_is_used_only_those_of_parameters_go) {
  TraceBuilder trace = two_layers(false, true);
  const auto findings = ask_of(trace, "unused-gradients");
  ASSERT_EQ(findings.size(), 1u);
  // The matmul, the node from its op on (19 us: views and the sum for a bias), the node that accumulates (10 us) and
  // the way to it: what stands before the op goes on to the next layer.
  EXPECT_EQ(findings[0].gain.high_ns, 30'000 + 19'000 + 10'000 + 20'000);
}

// Layers of one shape, of which the optimizer updates some.
TraceBuilder alike(int layers, int updated, std::string_view more_types = "", bool two_passes = false,
                   bool with_head = false) {
  TraceBuilder trace;
  double at = 0;
  if (with_head) {
    trace.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", {.start_us = 0, .end_us = 10})
        .op("aten::detach", {.start_us = 2, .end_us = 4, .dims = "[[3, 8]]", .types = R"(["float"])"});
    at = 20;
  }
  for (int i = 0; i < layers; ++i) {
    if (two_passes && i == layers / 2) {
      trace.op("aten::linear", {.start_us = at, .end_us = at + 5});
      at += 10;
    }
    trace.op("autograd::engine::evaluate_function: AddmmBackward0", {.start_us = at, .end_us = at + 40})
        .op("aten::mm",
            {.start_us = at + 1, .end_us = at + 19, .dims = "[[16, 8], [8, 8]]", .types = R"(["float", "float"])"})
        .op("aten::mm", {.start_us = at + 20,
                         .end_us = at + 38,
                         .external_id = i + 1,
                         .dims = "[[8, 16], [16, 8]]",
                         .types = R"(["float", "float"])"})
        .call("cudaLaunchKernel", {.start_us = at + 22, .end_us = at + 23, .correlation = i + 1, .external_id = i + 1})
        .kernel(kMatmulKernel, {.start_us = at + 25, .end_us = at + 35, .correlation = i + 1, .external_id = i + 1})
        .op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
            {.start_us = at + 50, .end_us = at + 60})
        .op("aten::detach", {.start_us = at + 52, .end_us = at + 54, .dims = "[[8, 8]]", .types = R"(["float"])"});
    at += 70;
  }
  std::string dims = with_head ? "[[[3, 8], [8, 8]" : "[[[8, 8]";
  for (int i = 1; i < updated; ++i) dims += ", [8, 8]";
  dims += "]]";
  const std::string types = R"(["TensorList")" + std::string(more_types) + "]";
  trace.annotation("Optimizer.step#Adam.step", {.start_us = at, .end_us = at + 100})
      .op("aten::_fused_adam_", {.start_us = at + 10, .end_us = at + 20, .dims = dims, .types = types});
  return trace;
}

TEST(WasteRules, of_several_parameters_of_one_shape_those_are_told_that_are_too_many) {
  TraceBuilder faulty = alike(6, 2);
  const auto findings = ask_of(faulty, "unused-gradients");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].title.starts_with("gradients of 4 parameters are computed that no optimizer uses"))
      << findings[0].title;
  EXPECT_EQ(findings[0].events, 4) << "the products of the weights, not those of the inputs";
  TraceBuilder mended = alike(2, 2);
  EXPECT_TRUE(ask_of(mended, "unused-gradients").empty());
  TraceBuilder cut = alike(6, 2, R"(, "...")");
  EXPECT_TRUE(ask_of(cut, "unused-gradients").empty()) << "the recording does not have all that is updated";
  TraceBuilder twice = alike(4, 2, "", true);
  EXPECT_TRUE(ask_of(twice, "unused-gradients").empty()) << "two passes may each give the same two a gradient";
}

TEST(WasteRules, a_head_that_is_surely_trained_tells_that_the_body_is_not) {
  // Backwards from the loss: the head's own last layer, then six layers of one shape, two of which are the head's.
  TraceBuilder trace = alike(6, 2, R"(, "TensorList")", false, true);
  const auto findings = ask_of(trace, "unused-gradients");
  ASSERT_EQ(findings.size(), 1u);
  // All work of the four layers of the body goes away, including the gradients of their inputs.
  EXPECT_GT(findings[0].gain.high_ns, 4 * (40'000 + 10'000));
}

TraceBuilder attention(std::string_view mask) {
  TraceBuilder trace;
  trace.device({.id = 0, .name = "NVIDIA H200", .total_memory_bytes = 150'000'000'000});
  const std::string dims = "[[2, 4, 128, 64], [2, 4, 128, 64], [2, 4, 128, 64], " + std::string(mask) + "]";
  trace
      .op("aten::tril",
          {.start_us = 0, .end_us = 5, .external_id = 1, .dims = "[[128, 128], []]", .types = R"(["bool", "Scalar"])"})
      .call("cudaLaunchKernel", {.start_us = 1, .end_us = 2, .correlation = 1, .external_id = 1})
      .kernel(kFillKernel, {.start_us = 3, .end_us = 13, .correlation = 1, .external_id = 1})
      .op("aten::scaled_dot_product_attention",
          {.start_us = 20,
           .end_us = 40,
           .external_id = 2,
           .dims = dims,
           .types = R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "bool"])"})
      .call("cudaLaunchKernel", {.start_us = 21, .end_us = 22, .correlation = 2, .external_id = 2})
      .kernel(kAttentionKernel, {.start_us = 30, .end_us = 130, .correlation = 2, .external_id = 2});
  return trace;
}

TEST(WasteRules, a_mask_that_all_sequences_share_is_given_as_a_tensor) {
  TraceBuilder faulty = attention("[128, 128]");
  const auto findings = ask_of(faulty, "attention-mask");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].gain.low_ns, 50'000 + 10'000) << "half of the attention, and making the mask";
  TraceBuilder mended = attention("[]");
  EXPECT_TRUE(ask_of(mended, "attention-mask").empty());
  TraceBuilder padding = attention("[2, 1, 128, 128]");
  EXPECT_TRUE(ask_of(padding, "attention-mask").empty()) << "one for each sample: not causal alone";
}

}  // namespace
}  // namespace firelane::advise
