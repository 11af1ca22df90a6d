// Work that every step does again on what no step changes, and a batch that only looks like it.
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

struct Operand {
  uint64_t storage = 0;
  std::string_view dims;
};

// From before the recording: a graph of 64 nodes, what is known of each, and weights.
constexpr Operand kEdges = {.storage = 0x2000, .dims = "[64, 64]"};
constexpr Operand kNodes = {.storage = 0x9000, .dims = "[64, 16]"};
constexpr Operand kLayer = {.storage = 0xa000, .dims = "[16, 16]"};

// Operators on a CPU that make one tensor each.
class Trained : public WrittenProgram<Trained> {
 public:
  Operand op(std::string_view name, double us, std::initializer_list<Operand> inputs, std::string_view made_dims) {
    std::string tensors;
    std::string dims;
    for (const Operand& input : inputs) {
      tensors += (tensors.empty() ? "[[" : ", [") + std::to_string(input.storage + 1) + ", " +
                 std::to_string(input.storage) + ", 0, -1, \"float\"]";
      dims += (dims.empty() ? "[" : ", ") + std::string(input.dims);
    }
    builder_.op(name, {.start_us = at_,
                       .end_us = at_ + us,
                       .dims = dims + "]",
                       .types = R"(["float", "float"])",
                       .tensors = tensors + "]"});
    const Operand made{.storage = next_ += 0x10'000, .dims = made_dims};
    if (!name.ends_with('_')) builder_.memory({.at_us = at_ + 5, .bytes = 4 * 64 * 64, .address = made.storage});
    at_ += us + 4;
    return made;
  }
  void backward() {
    builder_.op("autograd::engine::evaluate_function: MmBackward0", {.start_us = at_, .end_us = at_ + 100});
    at_ += 104;
  }

 private:
  uint64_t next_ = 0x10'0000;
};

enum class Edges { kUnchanged, kWritten, kOnce };
enum class Learns { kYes, kNo };
Judged normalized(Edges edges, Learns learns, const Operand& of = kEdges) {
  Trained program;
  for (int step = 0; step < 5; ++step) {
    Operand made = of;
    if (edges != Edges::kOnce) {
      const Operand root = program.op("aten::rsqrt", 50, {program.op("aten::sum", 150, {of}, "[64]")}, "[64]");
      made = program.op("aten::mul", 300, {of, root}, "[64, 64]");
    }
    const Operand hidden =
        program.op("aten::mm", 200, {made, program.op("aten::mm", 60, {kNodes, kLayer}, "[64, 16]")}, "[64, 16]");
    program.op("aten::mse_loss", 20, {hidden, kNodes}, "[]");
    if (learns == Learns::kYes) program.backward();
    program.op("aten::add_", 20, {learns == Learns::kYes ? kLayer : hidden}, "");
    if (edges == Edges::kWritten) program.op("aten::add_", 20, {of}, "");
    program.end_step();
  }
  return program.judged();
}

TEST(UnchangedWork, a_matrix_that_is_normalized_in_every_step_is_told_first) {
  const Judged found = normalized(Edges::kUnchanged, Learns::kYes);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "unchanged-work");
  EXPECT_NE(found.findings[0].title.find("aten::sum, aten::rsqrt, aten::mul"), std::string::npos)
      << found.findings[0].title;
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 510e3, 60e3);
}

// The host reads how long each sequence is, in each step again.
TEST(UnchangedWork, numbers_that_are_read_again_are_no_work_by_themselves) {
  Trained program;
  for (int step = 0; step < 5; ++step) {
    for (uint64_t i = 0; i < 12; ++i)
      program.op("aten::item", 20, {{.storage = 0x20'000 + 0x100 * i, .dims = "[48, 48]"}}, "[]");
    const Operand hidden = program.op("aten::mm", 200, {kNodes, kLayer}, "[64, 16]");
    program.op("aten::mse_loss", 20, {hidden, kNodes}, "[]");
    program.backward();
    program.op("aten::add_", 20, {kLayer}, "");
    program.end_step();
  }
  EXPECT_EQ(find(program.judged(), "unchanged-work"), nullptr);
}

// Candidates are judged by the factor of a covariance; nothing is learned.
enum class Factored { kInEveryStep, kOfEachBatch, kForTheSameBatch, kOnce };
Judged factored(Factored what) {
  Trained program;
  for (int step = 0; step < 5; ++step) {
    Operand asked = kNodes;
    if (what != Factored::kForTheSameBatch) asked = program.op("aten::randn", 20, {kNodes}, "[64, 64]");
    Operand factor = kEdges;
    if (what != Factored::kOnce) {
      const Operand of = what == Factored::kOfEachBatch ? asked : kEdges;
      factor =
          program.op("aten::linalg_cholesky", 600, {program.op("aten::mm", 100, {of, of}, "[64, 64]")}, "[64, 64]");
    }
    const Operand weights = program.op("aten::cholesky_solve", 80, {kNodes, factor}, "[64, 16]");
    const Operand rest = program.op("aten::linalg_solve_triangular", 100, {factor, asked}, "[64, 64]");
    program.op("aten::mm", 50, {rest, weights}, "[64, 16]");
    program.end_step();
  }
  return program.judged();
}

TEST(UnchangedWork, a_matrix_that_is_factored_in_every_step_is_told_without_training) {
  const Judged found = factored(Factored::kInEveryStep);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "unchanged-work");
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 780e3, 60e3)
      << "with the covariance, and what is solved with it for the same numbers";
  EXPECT_EQ(find(factored(Factored::kOfEachBatch), "unchanged-work"), nullptr);
  EXPECT_EQ(find(factored(Factored::kForTheSameBatch), "unchanged-work"), nullptr) << "a benchmark with one batch";
  EXPECT_EQ(find(factored(Factored::kOnce), "unchanged-work"), nullptr);
}

TEST(UnchangedWork, what_a_step_writes_or_the_layers_compute_is_none) {
  EXPECT_EQ(find(normalized(Edges::kOnce, Learns::kYes), "unchanged-work"), nullptr);
  EXPECT_EQ(find(normalized(Edges::kWritten, Learns::kYes), "unchanged-work"), nullptr) << "the matrix changes";
}

TEST(UnchangedWork, a_benchmark_with_one_batch_is_none) {
  EXPECT_EQ(
      find(normalized(Edges::kUnchanged, Learns::kYes, {.storage = 0x2000, .dims = "[64, 3, 8]"}), "unchanged-work"),
      nullptr)
      << "as many samples as the loss has";
  EXPECT_EQ(find(normalized(Edges::kUnchanged, Learns::kNo), "unchanged-work"), nullptr)
      << "without training nothing tells a batch from what does not change";
}

}  // namespace
}  // namespace firelane::advise
