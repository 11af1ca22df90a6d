// Padding that shapes tell, and batches that have none.
#include <gtest/gtest.h>

#include <algorithm>
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

bool says_that_padding_is_unseen(std::string_view op, std::string_view dims, std::string_view concrete) {
  const Judged judged = after([&](TraceBuilder& builder, double& at) {
    builder.op(op, {.start_us = at, .end_us = at + 5, .dims = dims, .concrete = concrete});
    at += 8;
  });
  EXPECT_EQ(find(judged, "padding"), nullptr);
  return std::any_of(judged.notes.begin(), judged.notes.end(), [](const std::string& note) {
    return note.find("16 x 1024 positions is padding is not judged") != std::string::npos;
  });
}

TEST(Padding, that_came_with_the_batch_is_said_to_be_unseen_where_something_points_to_it) {
  constexpr std::string_view kTokens = "[[1000, 64], [16, 1024], [], [], []]";
  EXPECT_TRUE(says_that_padding_is_unseen("aten::embedding", kTokens, R"(["", "", "0", "False", "False"])"));
  EXPECT_FALSE(says_that_padding_is_unseen("aten::embedding", kTokens, R"(["", "", "-1", "False", "False"])"));
  EXPECT_FALSE(says_that_padding_is_unseen("aten::embedding", kTokens, {})) << "not recorded";
  const auto attention = [](std::string_view mask) {
    const std::string each = "[16, 8, 1024, 64]";
    const std::string dims = "[" + each + ", " + each + ", " + each + ", " + std::string(mask) + ", [], [], [], []]";
    return says_that_padding_is_unseen("aten::scaled_dot_product_attention", dims, {});
  };
  EXPECT_TRUE(attention("[16, 1, 1, 1024]"));
  EXPECT_FALSE(attention("[1, 1, 1024, 1024]")) << "one for all samples: causal, or windows";
  EXPECT_FALSE(attention("[]"));
}

}  // namespace
}  // namespace firelane::advise
