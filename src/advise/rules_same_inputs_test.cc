// Parts of a program that run again on the same inputs, and what only looks like it.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

constexpr uint64_t kWords = 0x2000;  // made before the recording, as are the weights
constexpr uint64_t kWeights = 0x3000;

// Operators on a CPU, each of which takes tensors that fill their memory and makes one.
class SampledProgram : public WrittenProgram<SampledProgram> {
 public:
  uint64_t op(std::string_view name, std::initializer_list<uint64_t> inputs) {
    std::string tensors;
    std::string dims;
    for (const uint64_t storage : inputs) {
      tensors += (tensors.empty() ? "[[" : ", [") + std::to_string(storage + 1) + ", " + std::to_string(storage) +
                 ", 0, -1, \"float\"]";
      dims += dims.empty() ? "[[32, 32]" : ", [32, 32]";
    }
    builder_.op(name, {.start_us = at_,
                       .end_us = at_ + 30,
                       .dims = dims + "]",
                       .types = R"(["float", "float"])",
                       .tensors = tensors + "]"});
    const uint64_t made = next_ += 0x1000;
    if (!name.ends_with('_')) builder_.memory({.at_us = at_ + 5, .bytes = 4096, .address = made});
    at_ += 34;
    return made;
  }
  // A prompt of two layers.
  uint64_t encode() {
    return op("aten::linear", {op("aten::gelu", {op("aten::linear", {kWords, kWeights})}), kWeights});
  }

  // An operator that sorts that tensor, along which dimension it likes.
  void quantile(uint64_t of, std::string_view dims, const char* share) {
    const std::string tensors = "[[" + std::to_string(of + 1) + ", " + std::to_string(of) + ", 0, -1, \"float\"]]";
    const std::string numbers = std::string(R"(["", ")") + share + R"("])";
    builder_.op("aten::quantile",
                {.start_us = at_, .end_us = at_ + 120, .dims = dims, .concrete = numbers, .tensors = tensors});
    // The dispatcher is called twice.
    for (const double inward : {5.0, 6.0}) {
      builder_.op("aten::sort", {.start_us = at_ + inward,
                                 .end_us = at_ + 110 - inward,
                                 .dims = dims,
                                 .types = R"(["float"])",
                                 .concrete = R"(["", "0"])",
                                 .tensors = tensors});
    }
    at_ += 124;
  }

 private:
  uint64_t next_ = 0x10'0000;
};

enum class Sorted { kAgain, kWrittenBetween, kOnce, kInParts };
Judged sorted_with(Sorted what) {
  SampledProgram program;
  for (int step = 0; step < 4; ++step) {
    const uint64_t drawn = program.op("aten::randn", {kWords});
    for (const char* share : {"0.1", "0.5", "0.9"}) {
      program.quantile(drawn, what == Sorted::kInParts ? "[[16, 32]]" : "[[32, 32]]", share);
      if (what == Sorted::kWrittenBetween) program.op("aten::add_", {drawn, kWords});
      if (what == Sorted::kOnce) break;
    }
    program.end_step();
  }
  return program.judged();
}

TEST(RepeatedInputs, a_sort_inside_of_other_operators_is_told_with_how_often) {
  const Judged found = sorted_with(Sorted::kAgain);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "repeated-inputs");
  EXPECT_NE(found.findings[0].title.find("2 times a step (aten::sort)"), std::string::npos) << found.findings[0].title;
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 2 * 100e3, 40e3);
  EXPECT_EQ(find(sorted_with(Sorted::kWrittenBetween), "repeated-inputs"), nullptr);
  EXPECT_EQ(find(sorted_with(Sorted::kOnce), "repeated-inputs"), nullptr) << "one sort, dispatched twice";
  EXPECT_EQ(find(sorted_with(Sorted::kInParts), "repeated-inputs"), nullptr) << "where a part begins is not known";
}

// Each layer turns by angles of the same places; it computes them by `count` operators, and writes what is between them
// into memory of its own where that is asked for.
Judged turned_with(int count, bool written = false) {
  SampledProgram program;
  for (int step = 0; step < 4; ++step) {
    uint64_t x = program.op("aten::randn", {kWords});
    for (int layer = 0; layer < 6; ++layer) {
      uint64_t angles = kWords;
      for (int i = 0; i < count; ++i) {
        angles = program.op("aten::cos", {angles});
        if (!written) continue;
        const uint64_t sums = program.op("aten::zeros", {});
        program.op("aten::scatter_add_", {sums, angles});
        angles = sums;
      }
      x = program.op("aten::linear", {program.op("aten::mul", {x, angles}), kWeights});
    }
    program.end_step();
  }
  return program.judged();
}

TEST(RepeatedInputs, several_operators_in_a_row_count_without_a_layer_among_them) {
  EXPECT_NE(find(turned_with(5), "repeated-inputs"), nullptr);
  EXPECT_EQ(find(turned_with(2), "repeated-inputs"), nullptr) << "to keep their result saves next to nothing";
}

// A graph's normalization sums into zeros: what writes, and what has no inputs, ended the row of operators.
TEST(RepeatedInputs, what_is_written_between_operators_does_not_tear_them_apart) {
  EXPECT_NE(find(turned_with(4, true), "repeated-inputs"), nullptr);
  EXPECT_EQ(find(turned_with(1, true), "repeated-inputs"), nullptr);
}

enum class Prompt { kInEveryRound, kOnce, kWrittenOver, kDropout };
Judged sampled_with(Prompt prompt) {
  SampledProgram program;
  for (int step = 0; step < 4; ++step) {
    uint64_t state = program.op("aten::randn", {kWords});
    uint64_t text = program.encode();
    for (int round = 0; round < 5; ++round) {
      if (round > 0 && prompt != Prompt::kOnce) {
        if (prompt == Prompt::kWrittenOver) program.op("aten::add_", {kWords, state});
        if (prompt == Prompt::kDropout) {
          text = program.op("aten::linear", {program.op("aten::dropout", {text}), kWeights});
        } else {
          text = program.encode();
        }
      }
      state = program.op("aten::linear", {program.op("aten::mul", {state, text}), 0x4000});
    }
    program.op("aten::mean", {state});
    program.end_step();
  }
  return program.judged();
}

TEST(RepeatedInputs, a_prompt_that_is_encoded_in_every_round_is_told_first) {
  const Judged found = sampled_with(Prompt::kInEveryRound);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "repeated-inputs");
  EXPECT_NE(found.findings[0].title.find("4 times a step (aten::linear, aten::gelu)"), std::string::npos)
      << found.findings[0].title;
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 4 * 3 * 34e3, 60e3);
}

TEST(RepeatedInputs, what_changes_in_between_is_no_repetition) {
  EXPECT_EQ(find(sampled_with(Prompt::kOnce), "repeated-inputs"), nullptr);
  EXPECT_EQ(find(sampled_with(Prompt::kWrittenOver), "repeated-inputs"), nullptr) << "the words change in place";
  EXPECT_EQ(find(sampled_with(Prompt::kDropout), "repeated-inputs"), nullptr) << "chance decides";
}

// Each of four passes looks at a part of the words through a new view, where the tensor of the last pass was, or at
// another part.
Judged passed_with(bool same_part) {
  TraceBuilder builder;
  double at = 0;
  uint64_t made = 0x10'0000;
  const auto op = [&](std::string_view name, uint64_t tensor, uint64_t storage, std::string_view dims,
                      std::string_view numbers, bool makes) {
    const std::string tensors = "[[" + std::to_string(tensor) + ", " + std::to_string(storage) + ", 0, -1, \"float\"]]";
    builder.op(name, {.start_us = at,
                      .end_us = at + 30,
                      .dims = dims,
                      .types = R"(["float"])",
                      .concrete = numbers,
                      .tensors = tensors});
    made += 0x1000;
    if (makes) builder.memory({.at_us = at + 5, .bytes = 4096, .address = made});
    at += 34;
  };
  for (int step = 0; step < 4; ++step) {
    const double from = at;
    for (int pass = 0; pass < 4; ++pass) {
      const std::string start = std::to_string(same_part ? 0 : 8 * pass);
      op("aten::slice", 0x11, kWords, "[[32, 33]]", R"(["", "0", ")" + start + R"("])", false);
      op("aten::linear", 0x22, kWords, "[[8, 33]]", R"([""])", true);
      op("aten::gelu", made, made, "[[32, 32]]", R"([""])", true);
      op("aten::randn", 0x33, kWeights, "[[32, 32]]", R"([""])", true);
    }
    builder.step(step, {.start_us = from, .end_us = at});
  }
  const Model model = builder.build();
  return diagnose(model);
}

// On a CPU, numbers of a vector of 128 bytes, each of which a layer takes.
TEST(RepeatedInputs, numbers_of_a_short_vector_were_taken_for_the_same_tensor) {
  TraceBuilder builder;
  double at = 0;
  for (int step = 0; step < 4; ++step) {
    const double from = at;
    builder.memory({.at_us = at + 1, .bytes = 128, .address = 0x5000});
    for (uint64_t number = 0; number < 8; ++number) {
      const std::string tensors =
          "[[" + std::to_string(0x100 + number) + ", " + std::to_string(0x5000) + ", 0, -1, \"float\"]]";
      at += 10;
      builder.op("aten::linear",
                 {.start_us = at, .end_us = at + 30, .dims = "[[]]", .types = R"(["float"])", .tensors = tensors});
      builder.memory({.at_us = at + 5, .bytes = 4096, .address = 0x9000 + 0x1000 * number});
      at += 30;
    }
    builder.memory({.at_us = at + 1, .bytes = -128, .address = 0x5000});
    at += 4;
    builder.step(step, {.start_us = from, .end_us = at});
  }
  const Model model = builder.build();
  EXPECT_EQ(find(diagnose(model), "repeated-inputs"), nullptr);
}

TEST(RepeatedInputs, views_are_the_same_where_they_show_the_same_part) {
  EXPECT_NE(find(passed_with(true), "repeated-inputs"), nullptr);
  EXPECT_EQ(find(passed_with(false), "repeated-inputs"), nullptr) << "though the tensors are in the same place";
}

}  // namespace
}  // namespace firelane::advise
