// What a compiler is said to save on a CPU, where measured: elementwise chains much, products and optimizers nothing.
#include <gtest/gtest.h>

#include "advise/diagnose.h"
#include "advise/testing.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

// Training steps without a device: `name` forty times forward (12 us each, 8 us apart), and back. An update of as many
// operators follows, which makes no nodes.
Judged training(std::string_view name, std::string_view backward) {
  TraceBuilder builder;
  double at = 0;
  int64_t number = 0;
  for (int step = 0; step < 4; ++step) {
    const double from = at;
    const auto op = [&](std::string_view what, int64_t sequence_number) {
      builder.op(what, {.start_us = at, .end_us = at + 12, .sequence_number = sequence_number});
      at += 20;
    };
    for (int i = 0; i < 40; ++i) op(name, number + i);
    number += 40;
    for (int i = 1; i <= 40; ++i)
      op(std::string("autograd::engine::evaluate_function: ") + std::string(backward), number - i);
    for (int i = 0; i < 40; ++i) op("aten::add", number);
    builder.step(step, {.start_us = from, .end_us = at});
    builder.timed_step(step, {.start_us = from - 1e6, .end_us = at - 1e6});
  }
  const Model model = builder.build();
  return diagnose(model);
}

TEST(LessDispatch, a_compiler_joins_what_works_element_by_element_and_leaves_products_as_they_are) {
  const Judged pointwise = training("aten::tanh", "TanhBackward0");
  const Judged products = training("aten::linear", "AddmmBackward0");
  const auto saves_ns = [](const Judged& judged) {
    int64_t ns = 0;
    for (const std::string_view id : {"launch-overhead", "pointwise-unfused"}) {
      const Finding* finding = find(judged, id);
      ns += finding == nullptr ? 0 : finding->gain.middle_ns();
    }
    return ns;
  };
  // The update is no part of it: at most two thirds of 2.4 ms.
  EXPECT_GT(saves_ns(pointwise), 400'000);
  EXPECT_LT(saves_ns(pointwise), 1'600'000);
  EXPECT_LT(saves_ns(products), saves_ns(pointwise) / 2);
  const Finding* left = find(products, "launch-overhead");
  ASSERT_NE(left, nullptr) << "said, because it is true";
  EXPECT_EQ(left->confidence, Confidence::kLow);
}

}  // namespace
}  // namespace firelane::advise
