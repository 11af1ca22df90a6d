// Generation by hand: a prefill of 2 x 16 tokens, then three decode passes.
#include "analyze/verdict/inference.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

TraceBuilder& pass(TraceBuilder& trace, double at_us, std::string_view dims, double kernel_us) {
  return trace.op("aten::embedding", {.start_us = at_us, .end_us = at_us + 2, .dims = dims})
      .kernel("gemm", {.start_us = at_us + 3, .end_us = at_us + 3 + kernel_us});
}

TEST(Inference, one_long_pass_then_passes_of_one_token) {
  TraceBuilder trace;
  pass(trace, 0, "[[1000, 64], [2, 16]]", 50);
  pass(trace, 100, "[[1000, 64], [2, 1]]", 10);
  pass(trace, 120, "[[1000, 64], [2, 1]]", 10);
  pass(trace, 160, "[[1000, 64], [2, 1]]", 7);
  const Inference result = find_inference(trace.build());
  ASSERT_EQ(result.passes.size(), 4u);
  EXPECT_FALSE(result.by_annotation);
  EXPECT_EQ(result.prefills, 1);
  EXPECT_EQ(result.decodes, 3);
  EXPECT_EQ(result.batch, 2);
  EXPECT_EQ(result.time_to_first_token_ns, 100'000);
  EXPECT_EQ(result.time_per_token_ns, 20'000);  // 20, 40 and 10 us
  EXPECT_EQ(result.max_token_ns, 40'000);
  EXPECT_EQ(result.passes[0].device_busy_ns, 50'000);
  EXPECT_DOUBLE_EQ(result.decode_tokens_per_s, 6 / 70e-6);
  EXPECT_DOUBLE_EQ(result.prefill_tokens_per_s, 32 / 100e-6);
}

TEST(Inference, a_smaller_table_is_not_the_tokens) {
  TraceBuilder trace;
  pass(trace, 0, "[[1000, 64], [1, 16]]", 5)
      .op("aten::embedding", {.start_us = 10, .end_us = 11, .dims = "[[16, 64], [1, 16]]"});
  pass(trace, 100, "[[1000, 64], [1, 1]]", 5);
  EXPECT_EQ(find_inference(trace.build()).passes.size(), 2u);
}

// Two prompts of 16 tokens, one after the other, then a decode.
TEST(Inference, two_prefills_in_a_row_are_two_requests) {
  TraceBuilder trace;
  pass(trace, 0, "[[1000, 64], [1, 16]]", 20);
  pass(trace, 25, "[[1000, 64], [1, 16]]", 20);
  pass(trace, 50, "[[1000, 64], [1, 1]]", 5);
  const Inference result = find_inference(trace.build());
  EXPECT_EQ(result.prefills, 2);
  EXPECT_EQ(result.requests, 2);
  EXPECT_EQ(result.time_to_first_token_ns, 25'000);
}

TEST(Inference, chunks_of_a_prompt_are_one_request) {
  TraceBuilder trace;
  const auto attention = [&](double at_us, std::string_view dims) {
    trace.op("aten::scaled_dot_product_attention", {.start_us = at_us, .end_us = at_us + 1, .dims = dims});
  };
  pass(trace, 0, "[[1000, 64], [1, 16]]", 20);
  attention(2, "[[1, 4, 16, 8], [1, 4, 16, 8], [1, 4, 16, 8]]");
  pass(trace, 25, "[[1000, 64], [1, 16]]", 20);
  attention(27, "[[1, 4, 16, 8], [1, 4, 32, 8], [1, 4, 32, 8]]");
  pass(trace, 50, "[[1000, 64], [1, 1]]", 5);
  const Inference result = find_inference(trace.build());
  EXPECT_EQ(result.requests, 1);
  EXPECT_EQ(result.time_to_first_token_ns, 50'000);
}

// The host launches a token every 10 us, the device needs 30 for each.
TEST(Inference, a_token_takes_what_the_device_needs_where_the_host_runs_ahead) {
  TraceBuilder trace;
  for (int i = 0; i < 4; ++i) {
    const double at = 10.0 * i;
    trace.op("aten::embedding",
             {.start_us = at, .end_us = at + 2, .dims = i == 0 ? "[[1000, 64], [1, 16]]" : "[[1000, 64], [1, 1]]"});
    trace.call("cudaLaunchKernel", {.start_us = at + 3, .end_us = at + 5, .correlation = i + 1});
    trace.kernel("gemm", {.start_us = 5 + 30.0 * i, .end_us = 35 + 30.0 * i, .correlation = i + 1});
  }
  const Inference result = find_inference(trace.build());
  EXPECT_EQ(result.time_to_first_token_ns, 35'000);
  EXPECT_EQ(result.time_per_token_ns, 30'000);
  EXPECT_EQ(result.passes[3].device_busy_ns, 30'000);
  EXPECT_EQ(result.passes[3].kernels, 1);
}

TEST(Inference, annotations_win) {
  const Inference result = find_inference(TraceBuilder()
                                              .annotation("prefill", {.start_us = 0, .end_us = 30})
                                              .annotation("decode step", {.start_us = 40, .end_us = 50})
                                              .build());
  EXPECT_TRUE(result.by_annotation);
  EXPECT_EQ(result.time_to_first_token_ns, 30'000);
  EXPECT_EQ(result.time_per_token_ns, 10'000);
  EXPECT_EQ(result.decode_tokens_per_s, -1);  // nobody says how many sequences
}

TEST(Inference, training_and_encoders_are_not_generation) {
  TraceBuilder training;
  pass(training, 0, "[[1000, 64], [2, 1]]", 5)
      .op("autograd::engine::evaluate_function: X", {.start_us = 50, .end_us = 60});
  EXPECT_TRUE(find_inference(training.build()).is_training);
  TraceBuilder encoder;
  pass(encoder, 0, "[[1000, 64], [2, 16]]", 5);
  EXPECT_TRUE(find_inference(encoder.build()).passes.empty());
}

}  // namespace
}  // namespace firelane::analyze
