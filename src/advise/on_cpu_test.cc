// Rules on traces without a device: operators do the work, found with the fault and absent without it.
#include "advise/on_cpu.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "advise/diagnose.h"
#include "advise/gain.h"
#include "advise/proofs.h"
#include "advise/testing.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

struct Op {
  std::string_view name;
  double us;
  std::string_view dims = "[[1000, 1000]]";
  std::string_view types = R"(["float"])";
  std::string_view strides = {};
};

// Four steps of these ops, 1 us apart unless said, after a matmul of 1000 us.
Diagnosis diagnosed(const std::vector<Op>& ops, double apart_us = 1) {
  TraceBuilder builder;
  double at = 0;
  for (int i = 0; i < 4; ++i) {
    const double start = at;
    builder.op("aten::mm", {.start_us = at, .end_us = at + 1000});
    at += 1000 + apart_us;
    for (const Op& op : ops) {
      builder.op(op.name,
                 {.start_us = at, .end_us = at + op.us, .dims = op.dims, .types = op.types, .strides = op.strides});
      at += op.us + apart_us;
    }
    builder.step(i, {.start_us = start, .end_us = at});
  }
  return diagnose(builder.build());
}

TEST(OnCpu, a_mask_that_all_rows_share_is_told_where_there_is_something_to_skip) {
  const auto attention = [](std::string_view dims) {
    return diagnosed({{"aten::scaled_dot_product_attention", 800, dims}});
  };
  const Diagnosis found = attention("[[2, 2, 256, 16], [2, 2, 256, 16], [2, 2, 256, 16], [256, 256]]");
  const Finding* finding = find(found, "attention-mask");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->confidence, Confidence::kLow) << "its values are not in the trace";
  EXPECT_GT(finding->gain.middle_ns(), 300'000);
  EXPECT_EQ(find(attention("[[2, 2, 256, 16], [2, 2, 256, 16], [2, 2, 256, 16], []]"), "attention-mask"), nullptr);
  EXPECT_EQ(find(attention("[[2, 2, 64, 16], [2, 2, 64, 16], [2, 2, 64, 16], [64, 64]]"), "attention-mask"), nullptr);
}

TEST(OnCpu, a_chain_of_pointwise_operators_saves_all_but_its_longest_at_best) {
  const Diagnosis diagnosis = diagnosed({{"aten::mul", 200}, {"aten::exp", 400}, {"aten::add", 200}});
  const Finding* finding = find(diagnosis, "pointwise-unfused");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost_ns, 800'000);
  // 400 us at best, half of it at worst; recording's cost is taken out first.
  EXPECT_NEAR(static_cast<double>(finding->gain.middle_ns()), likely_ns(300'000, 1e6), 10'000);
  EXPECT_EQ(find(diagnosed({{"aten::exp", 400}, {"aten::mm", 200}, {"aten::add", 200}}), "pointwise-unfused"), nullptr);
}

TEST(OnCpu, attention_by_hand_is_found_and_the_fused_operator_is_not) {
  const Diagnosis diagnosis =
      diagnosed({{"aten::matmul", 500}, {"aten::div", 100}, {"aten::softmax", 300}, {"aten::matmul", 500}});
  const Finding* finding = find(diagnosis, "attention-unfused");
  ASSERT_NE(finding, nullptr);
  // At best the 400 us between, and one pass of 100 us over the scores in each matmul; at worst 460.
  EXPECT_NEAR(static_cast<double>(finding->gain.middle_ns()), likely_ns(530'000, 1.5e6), 15'000);
  EXPECT_EQ(find(diagnosed({{"aten::scaled_dot_product_attention", 900}}), "attention-unfused"), nullptr);
  EXPECT_EQ(find(diagnosed({{"aten::linear", 500}, {"aten::softmax", 300}}), "attention-unfused"), nullptr);
}

TEST(OnCpu, casts_there_and_back_are_counted_once_each) {
  constexpr std::string_view kShape = "[[1000, 1000], [1000, 1000]]";
  const Op to_double{"aten::copy_", 100, kShape, R"(["double", "float"])"};
  const Op to_float{"aten::copy_", 100, kShape, R"(["float", "double"])"};
  const Diagnosis diagnosis = diagnosed({to_double, to_float, to_double, to_float});
  const Finding* finding = find(diagnosis, "dtype-ping-pong");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost_ns, 400'000);
  EXPECT_EQ(find(diagnosed({to_double, {"aten::mm", 100}}), "dtype-ping-pong"), nullptr);
}

TEST(OnCpu, copies_that_change_the_layout_are_found_and_plain_ones_are_not) {
  constexpr std::string_view kShape = "[[1000, 1000], [1000, 1000]]";
  constexpr std::string_view kFloats = R"(["float", "float"])";
  const Op turned{"aten::copy_", 400, kShape, kFloats, "[[1000, 1], [1, 1000]]"};
  const Op plain{"aten::copy_", 400, kShape, kFloats, "[[1000, 1], [1000, 1]]"};
  EXPECT_NE(find(diagnosed({turned}), "layout-copies"), nullptr);
  EXPECT_EQ(find(diagnosed({plain}), "layout-copies"), nullptr);
}

TEST(OnCpu, a_program_without_convolutions_is_not_told_about_channels_last) {
  const Op turned{"aten::copy_", 400, "[[1000, 1000], [1000, 1000]]", R"(["float", "float"])",
                  "[[1000, 1], [1, 1000]]"};
  const auto advice = [&](const std::vector<Op>& ops) {
    const Diagnosis diagnosis = diagnosed(ops);
    const Finding* finding = find(diagnosis, "layout-copies");
    return finding == nullptr ? std::string("not found") : finding->try_text + finding->try_code;
  };
  EXPECT_EQ(advice({turned, {"aten::mm", 100}}).find("channels_last"), std::string::npos);
  EXPECT_NE(advice({turned, {"aten::conv2d", 100}}).find("channels_last"), std::string::npos);
}

TEST(OnCpu, code_between_operators_is_found_when_it_is_in_every_step) {
  const auto build = [](int every) {
    TraceBuilder builder;
    double at = 0;
    for (int i = 0; i < 8; ++i) {
      const double start = at;
      builder.op("aten::mm", {.start_us = at, .end_us = at + 4000});
      at += 4010;
      if (i % every == 0) {
        builder.python("train.py(7): save", {.start_us = at, .end_us = at + 2000});
        at += 2000;
      }
      builder.step(i, {.start_us = start, .end_us = at});
    }
    return diagnose(builder.build());
  };
  const Diagnosis diagnosis = build(1);
  const Finding* finding = find(diagnosis, "host-code");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("train.py(7): save"), std::string::npos);
  EXPECT_NEAR(static_cast<double>(finding->gain.middle_ns()), 2e6, 2e4);
  EXPECT_EQ(find(build(8), "host-code"), nullptr);
}

TEST(OnCpu, the_way_to_an_operator_in_python_goes_with_it_when_it_is_short) {
  constexpr std::string_view kShape = "[[1000, 1000], [1000, 1000]]";
  const std::vector<Op> casts = {{"aten::copy_", 100, kShape, R"(["double", "float"])"},
                                 {"aten::copy_", 100, kShape, R"(["float", "double"])"}};
  const auto gain_ns = [&](double apart_us) {
    const Diagnosis diagnosis = diagnosed(casts, apart_us);
    const Finding* finding = find(diagnosis, "dtype-ping-pong");
    return finding == nullptr ? 0.0 : static_cast<double>(finding->gain.middle_ns());
  };
  EXPECT_NEAR(gain_ns(15), likely_ns(230'000, 1.2e6),
              3'000);  // two of 100 us, two ways of 15; less what recording cost
  EXPECT_NEAR(gain_ns(50), likely_ns(200'000, 1.2e6), 3'000);  // somebody else's time
}

TEST(OnCpu, a_chain_of_operators_ends_with_its_step) {
  TraceBuilder builder;
  for (int i = 0; i < 4; ++i) {
    const double at = 400.0 * i;
    builder.step(i, {.start_us = at, .end_us = at + 400});
    for (int k = 0; k < 4; ++k) {
      builder.op("aten::mul", {.start_us = at + 100.0 * k,
                               .end_us = at + 100.0 * k + 99,
                               .dims = "[[1000, 1000]]",
                               .types = R"(["float"])"});
    }
  }
  const Judged diagnosis = diagnose(builder.build());
  const Finding* finding = find(diagnosis, "pointwise-unfused");
  ASSERT_NE(finding, nullptr);
  EXPECT_TRUE(finding->title.starts_with("chains of up to 4 operators ")) << finding->title;
}

TEST(OnCpu, memory_that_grows_with_every_step_is_found) {
  const auto build = [](bool frees) {
    TraceBuilder builder;
    for (int i = 0; i < 6; ++i) {
      const double at = 1000.0 * i;
      const auto address = static_cast<uint64_t>(0x1000 * (i + 1));
      builder.step(i, {.start_us = at, .end_us = at + 1000}).op("aten::mm", {.start_us = at, .end_us = at + 900});
      builder.memory({.at_us = at + 10, .bytes = 2 << 20, .address = address});
      if (frees) builder.memory({.at_us = at + 950, .bytes = -(2 << 20), .address = address});
    }
    return diagnose(builder.build());
  };
  EXPECT_NE(find(build(false), "memory-leak"), nullptr);
  EXPECT_EQ(find(build(true), "memory-leak"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
