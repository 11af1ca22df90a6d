// Each rule on a trace with its fault, and on the same one without it.
#include <gtest/gtest.h>

#include <string>

#include "advise/rule.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

// Ops one after another, 100 us apart, each with one kernel of 50 us.
class Generation {
 public:
  Generation() { trace_.device({.id = 0, .name = "NVIDIA H200", .total_memory_bytes = 150'000'000'000}); }

  Generation& op(std::string_view name, const std::string& dims, std::string_view types) {
    const double at = static_cast<double>(next_) * 100;
    trace_.op(name, {.start_us = at, .end_us = at + 20, .external_id = next_, .dims = dims, .types = types})
        .call("cudaLaunchKernel", {.start_us = at + 1, .end_us = at + 2, .correlation = next_, .external_id = next_})
        .kernel("gemm", {.start_us = at + 30, .end_us = at + 80, .correlation = next_, .external_id = next_});
    ++next_;
    return *this;
  }
  // A model of one layer over so many tokens.
  Generation& pass(int64_t tokens) {
    const std::string count = std::to_string(tokens);
    op("aten::embedding", "[[1000, 64], [1, " + count + "]]", R"(["float", "long int"])");
    return op("aten::linear", "[[1, " + count + ", 64], [64, 64]]", R"(["float", "float"])");
  }
  Generation& backward() {
    const double at = static_cast<double>(next_++) * 100;
    trace_.op("autograd::engine::evaluate_function: MmBackward0", {.start_us = at, .end_us = at + 10});
    return *this;
  }
  Generation& cat(int64_t length, int64_t added) {
    return op("aten::cat", "[[[4, " + std::to_string(length) + "], [4, " + std::to_string(added) + "]], []]",
              R"(["TensorList", "Scalar"])");
  }
  std::vector<Finding> ask(std::string_view rule) {
    const StudiedTrace trace(trace_.build());
    const Context context{.trace = trace,
                          .window = {0, 1'000'000'000},
                          .step_ns = 1'000'000,
                          .has_device_work = true,
                          .gain_ns = [&](const analyze::WhatIf& change) {
                            double saved = 0;
                            for (const analyze::DeviceCut& cut : change.device) saved += (1 - cut.keep) * 50'000;
                            return static_cast<int64_t>(saved);
                          }};
    return find_rule(rule)->find(context);
  }

 private:
  TraceBuilder trace_;
  int64_t next_ = 1;
};

TEST(GenerationRules, a_prefix_that_grows_by_one_token_is_computed_again) {
  const auto findings = Generation().pass(100).pass(101).pass(102).ask("recomputed-prefix");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(
      findings[0].title.starts_with("each new token recomputes all tokens before it: 2 passes over 101 to 102 tokens"))
      << findings[0].title;
  // Two passes of two kernels; 3 of their 50 us stay.
  EXPECT_EQ(findings[0].gain.high_ns, 4 * 47'000);
  EXPECT_EQ(findings[0].precedence, Precedence::kNeedless);
}

TEST(GenerationRules, a_prompt_that_comes_again_may_be_kept_too) {
  const auto findings =
      Generation().pass(100).pass(101).pass(102).pass(100).pass(101).pass(102).ask("recomputed-prefix");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].gain.high_ns, 12 * 47'000);
}

TEST(GenerationRules, tokens_one_by_one_batches_and_training_recompute_nothing) {
  EXPECT_TRUE(Generation().pass(100).pass(1).pass(1).pass(1).ask("recomputed-prefix").empty()) << "a KV cache";
  EXPECT_TRUE(Generation().pass(100).pass(100).pass(100).ask("recomputed-prefix").empty()) << "an encoder";
  EXPECT_TRUE(Generation().pass(100).pass(101).pass(102).backward().ask("recomputed-prefix").empty()) << "training";
}

TEST(GenerationRules, appending_with_cat_copies_what_is_there) {
  const auto findings = Generation().cat(100, 1).cat(101, 1).cat(102, 1).cat(103, 1).ask("growing-input");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].gain.high_ns, 4 * 47'000);
  EXPECT_NE(findings[0].title.find("(last: [[4, 103], [4, 1]])"), std::string::npos) << findings[0].title;
}

TEST(GenerationRules, cat_of_parts_of_one_size_does_not_grow) {
  EXPECT_TRUE(Generation().cat(100, 1).cat(100, 1).cat(100, 1).cat(100, 1).ask("growing-input").empty())
      << "the same each time";
  EXPECT_TRUE(Generation().cat(2, 1).cat(3, 1).cat(4, 1).cat(5, 1).ask("growing-input").empty()) << "little to copy";
  EXPECT_TRUE(Generation().cat(100, 1).cat(101, 1).cat(102, 1).cat(103, 1).backward().ask("growing-input").empty());
}

}  // namespace
}  // namespace firelane::advise
