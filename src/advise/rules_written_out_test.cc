// Pairs and windows that are written out to be summed, and those that are needed.
#include <gtest/gtest.h>

#include "advise/tensor_program.h"

namespace firelane::advise {
namespace {

constexpr int kOfSteps = 4;

enum class Pairs { kSquared, kOtherPower, kAbsolute, kMultiplied, kBothTrue, kKept, kSummedOverOne };

Judged paired(Pairs what) {
  TensorProgram program;
  const WrittenTensor a = program.weight({256, 1, 32});
  const WrittenTensor b = program.weight({1, 128, 32});
  const WrittenTensor other = program.weight({256, 256});
  for (int step = 0; step < kOfSteps; ++step) {
    program.op("aten::mm", 500, {other, other}, {256, 256});
    program.op("aten::gelu", 50, {other}, {256, 256});
    const bool multiplies = what == Pairs::kMultiplied || what == Pairs::kBothTrue;
    const char* name = what == Pairs::kBothTrue ? "aten::bitwise_and" : multiplies ? "aten::mul" : "aten::sub";
    WrittenTensor all = program.op(name, 500, {a, b}, {256, 128, 32});
    const WrittenTensor first = all;
    if (what == Pairs::kAbsolute) all = program.op("aten::abs", 300, {all}, all.dims);
    if (!multiplies && what != Pairs::kAbsolute) {
      const char* power = what == Pairs::kOtherPower ? R"(["", "2.5"])" : R"(["", "2.0"])";
      all = program.op("aten::pow", 300, {all}, all.dims, power);
    }
    program.op("aten::sum", 400, {all}, {256, 128},
               what == Pairs::kSummedOverOne ? R"(["", "[1]"])" : R"(["", "[-1]"])");
    if (what == Pairs::kKept) program.op("aten::exp", 300, {first}, first.dims);
    program.finish_step();
  }
  return program.judged();
}

TEST(BroadcastProduct, squared_differences_of_all_pairs_are_told_first) {
  const Judged found = paired(Pairs::kSquared);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "broadcast-product");
  EXPECT_NE(found.findings[0].title.find("[256, 128, 32]"), std::string::npos) << found.findings[0].title;
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 1100e3, 150e3);
}

TEST(BroadcastProduct, products_of_all_pairs_are_a_matrix_product) {
  const Judged found = paired(Pairs::kMultiplied);
  const Finding* finding = find(found, "broadcast-product");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->try_code.find("a @ b.mT"), std::string::npos);
}

TEST(BroadcastProduct, pairs_that_are_compared_and_counted_are_a_product_of_zeros_and_ones) {
  const Judged found = paired(Pairs::kBothTrue);
  const Finding* finding = find(found, "broadcast-product");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->try_code.find("torch.bincount"), std::string::npos);
  EXPECT_NE(finding->title.find("comparisons of all pairs"), std::string::npos) << finding->title;
}

TEST(BroadcastProduct, cosine_similarities_of_all_pairs_are_a_product_of_rows_of_length_one) {
  const auto similar = [](const std::vector<int64_t>& left, const std::vector<int64_t>& right) {
    TensorProgram program;
    const WrittenTensor a = program.weight(left);
    const WrittenTensor b = program.weight(right);
    const WrittenTensor other = program.weight({256, 256});
    for (int step = 0; step < kOfSteps; ++step) {
      program.op("aten::mm", 500, {other, other}, {256, 256});
      program.op("aten::gelu", 50, {other}, {256, 256});
      program.op("aten::cosine_similarity", 1500, {a, b}, {256, left[1] * right[1]}, R"(["", "", "-1", "1e-08"])");
      program.finish_step();
    }
    return program.judged();
  };
  const Judged all = similar({256, 1, 32}, {1, 128, 32});
  const Finding* finding = find(all, "broadcast-product");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("cosine similarities of all pairs of [256, 1, 32] and [1, 128, 32]"), std::string::npos)
      << finding->title;
  EXPECT_NE(finding->try_code.find("F.normalize(a, dim=-1) @"), std::string::npos);
  EXPECT_EQ(find(similar({256, 8, 32}, {256, 8, 32}), "broadcast-product"), nullptr) << "each with its own";
}

TEST(BroadcastProduct, a_power_of_two_and_a_half_was_taken_for_a_square) {
  EXPECT_EQ(find(paired(Pairs::kOtherPower), "broadcast-product"), nullptr);
}

TEST(BroadcastProduct, what_no_product_does_is_none) {
  EXPECT_EQ(find(paired(Pairs::kAbsolute), "broadcast-product"), nullptr) << "sums of absolute differences";
  EXPECT_EQ(find(paired(Pairs::kKept), "broadcast-product"), nullptr) << "the pairs are needed themselves";
  EXPECT_EQ(find(paired(Pairs::kSummedOverOne), "broadcast-product"), nullptr) << "a sum over what one of them has";
}

// On a CPU whose trace has no other product, what one reaches was not known.
TEST(BroadcastProduct, pairs_in_a_program_without_any_product_are_found) {
  TensorProgram program;
  const WrittenTensor a = program.weight({256, 1, 32});
  const WrittenTensor b = program.weight({1, 128, 32});
  for (int step = 0; step < kOfSteps; ++step) {
    program.op("aten::gelu", 50, {a}, {256, 1, 32});
    const WrittenTensor all = program.op("aten::mul", 800, {a, b}, {256, 128, 32});
    program.op("aten::sum", 800, {all}, {256, 128}, R"(["", "[-1]"])");
    program.finish_step();
  }
  EXPECT_NE(find(program.judged(), "broadcast-product"), nullptr);
}

enum class Reader { kProduct, kOwnWeights, kMaximum };

Judged windowed(Reader reader, bool overlap) {
  TensorProgram program;
  const WrittenTensor signal = program.weight({4096});
  const WrittenTensor weights = program.weight({64, 16});
  const WrittenTensor each = program.weight({4033, 64, 1});
  const WrittenTensor other = program.weight({256, 256});
  for (int step = 0; step < kOfSteps; ++step) {
    program.op("aten::mm", 500, {other, other}, {256, 256});
    program.op("aten::gelu", 50, {other}, {256, 256});
    const WrittenTensor view = overlap ? signal.seen_as({4033, 64}, {1, 1}) : signal.seen_as({64, 64}, {64, 1});
    const WrittenTensor windows = program.copy(600, view);
    const int64_t count = view.dims[0];
    if (reader == Reader::kProduct) program.op("aten::mm", 800, {windows, weights}, {count, 16});
    if (reader == Reader::kOwnWeights)
      program.op("aten::bmm", 800, {windows.seen_as({count, 1, 64}), each}, {count, 1, 1});
    if (reader == Reader::kMaximum) program.op("aten::amax", 800, {windows}, {count});
    program.finish_step();
  }
  return program.judged();
}

TEST(OverlappingWindows, windows_that_are_copied_for_a_product_are_told_first) {
  const Judged found = windowed(Reader::kProduct, true);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "overlapping-windows");
  EXPECT_NE(found.findings[0].title.find("63 times the size of their source"), std::string::npos)
      << found.findings[0].title;
}

TEST(OverlappingWindows, windows_for_something_else_and_those_side_by_side_are_none) {
  EXPECT_EQ(find(windowed(Reader::kOwnWeights, true), "overlapping-windows"), nullptr) << "each has its own weights";
  EXPECT_EQ(find(windowed(Reader::kMaximum, true), "overlapping-windows"), nullptr);
  EXPECT_EQ(find(windowed(Reader::kProduct, false), "overlapping-windows"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
