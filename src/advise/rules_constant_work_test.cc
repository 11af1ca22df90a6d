// Constants that are computed in every step, and what only looks like them.
#include <gtest/gtest.h>

#include <string>

#include "advise/diagnose.h"
#include "advise/testing.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

// Four steps on a CPU: a tensor of numbers, two operators on it, and a model. `last`: the number that the factory gets,
// with the step's own behind it where it changes.
struct Steps {
  std::string_view second = "aten::cumprod";
  std::string_view dims = "[[20000], []]";  // of the second operator
  bool changes = false;
  bool alone = false;  // nothing is computed from it
};
Judged judged(const Steps& steps) {
  TraceBuilder builder;
  double at = 0;
  for (int step = 0; step < 4; ++step) {
    const double from = at;
    const auto op = [&](std::string_view name, double us, std::string_view dims, const std::string& numbers) {
      builder.op(
          name,
          {.start_us = at, .end_us = at + us, .dims = dims, .types = "[\"double\", \"double\"]", .concrete = numbers});
      at += us + 5;
    };
    const std::string last = steps.changes ? std::to_string(step) : "20";
    builder
        .op("aten::linspace", {.start_us = at,
                               .end_us = at + 300,
                               .dims = "[[], []]",
                               .types = "[\"Scalar\", \"Scalar\"]",
                               .concrete = "[\"0\", \"" + last + "\"]"})
        .op("aten::empty", {.start_us = at + 1,
                            .end_us = at + 5,
                            .dims = "[[], []]",
                            .types = "[\"ScalarList\", \"Scalar\"]",
                            .concrete = "[\"[20000]\", \"7\"]"});
    at += 305;
    if (!steps.alone) {
      op("aten::rsub", 300, "[[20000], []]", "[\"\", \"1\"]");
      op(steps.second, 300, steps.dims, "[\"\", \"0\"]");
    }
    op("aten::linear", 1500, "[[64, 64], [64, 64]]", "[\"\", \"\"]");
    builder.step(step, {.start_us = from, .end_us = at});
  }
  const Model model = builder.build();
  return diagnose(model);
}

TEST(ConstantWork, what_is_computed_from_the_same_numbers_in_every_step_is_told) {
  const Judged found = judged({});
  const Finding* finding = find(found, "constant-work");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("1 time a step (aten::linspace, aten::rsub, aten::cumprod)"), std::string::npos)
      << finding->title;
  EXPECT_NEAR(static_cast<double>(finding->gain.middle_ns()), 900e3, 150e3);
}

TEST(ConstantWork, other_numbers_chance_and_other_data_are_none) {
  EXPECT_EQ(find(judged({.changes = true}), "constant-work"), nullptr);
  EXPECT_EQ(find(judged({.second = "aten::bernoulli"}), "constant-work"), nullptr);
  EXPECT_EQ(find(judged({.alone = true}), "constant-work"), nullptr) << "it may be filled later";
  const Judged part = judged({.second = "aten::mul", .dims = "[[20000], [20000]]"});
  const Finding* finding = find(part, "constant-work");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->title.find("aten::mul"), std::string::npos) << "the other input is the program's";
}

}  // namespace
}  // namespace firelane::advise
