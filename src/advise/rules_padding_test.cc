// Padding that shapes tell, and batches that have none.
#include <gtest/gtest.h>

#include <string>

#include "advise/diagnose.h"
#include "advise/testing.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

// Four steps on a CPU: `collate` makes a batch, then a model computes for 4 ms.
template <typename Collate>
Judged after(const Collate& collate) {
  TraceBuilder builder;
  double at = 0;
  for (int step = 0; step < 4; ++step) {
    const double from = at;
    collate(builder, at);
    for (int i = 0; i < 4; ++i) {
      builder.op("aten::linear", {.start_us = at, .end_us = at + 1000});
      at += 1005;
    }
    builder.step(step, {.start_us = from, .end_us = at});
  }
  const Model model = builder.build();
  return diagnose(model);
}

Judged batches_of(std::string_view lengths) {
  return after([&](TraceBuilder& builder, double& at) {
    builder.op("aten::pad_sequence", {.start_us = at,
                                      .end_us = at + 30,
                                      .dims = "[[" + std::string(lengths) + "], [], [], []]",
                                      .types = R"(["TensorList", "Scalar", "Scalar", ""])"});
    at += 40;
  });
}

TEST(Padding, samples_of_different_lengths_in_one_batch_are_told_with_their_part) {
  const Judged judged = batches_of("[100], [20], [40], [40]");
  ASSERT_FALSE(judged.findings.empty());
  const Finding& finding = judged.findings[0];
  EXPECT_EQ(finding.id, "padding");
  EXPECT_TRUE(finding.title.starts_with("50% of what the batches hold is padding: 4 samples a step of 50 positions"))
      << finding.title;
  EXPECT_LT(finding.gain.low_ns, 2'000'000);
  EXPECT_GT(finding.gain.high_ns, 1'500'000);
  EXPECT_EQ(find(batches_of("[100], [96], [90], [99]"), "padding"), nullptr) << "of similar length";
}

Judged padded(std::string_view type, std::string_view dims) {
  return after([&](TraceBuilder& builder, double& at) {
    for (int i = 0; i < 8; ++i) {
      builder.op("aten::pad", {.start_us = at,
                               .end_us = at + 5,
                               .dims = dims,
                               .types = R"([")" + std::string(type) + R"(", "ScalarList", "", ""])",
                               .concrete = R"(["", "[0, 96]", "constant", ""])"});
      at += 8;
    }
  });
}

TEST(Padding, token_numbers_that_are_padded_one_by_one_count_and_images_do_not) {
  EXPECT_NE(find(padded("long int", "[[32], [], [], []]"), "padding"), nullptr);
  EXPECT_EQ(find(padded("float", "[[3, 32, 32], [], [], []]"), "padding"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
