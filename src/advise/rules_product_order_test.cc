// Products in a costly order, and with one matrix for each of many.
#include <gtest/gtest.h>

#include "advise/tensor_program.h"

namespace firelane::advise {
namespace {

constexpr int kSteps = 4;

enum class Between { kNothing, kScale, kSoftmax, kSecondReader };

// (q k^T) v of two heads, of which the large product takes most.
Judged attended(Between between, int64_t length) {
  TensorProgram program;
  const WrittenTensor q = program.weight({2, length, 32});
  const WrittenTensor k = program.weight({2, 32, length});
  const WrittenTensor v = program.weight({2, length, 32});
  const WrittenTensor w = program.weight({2 * length, 32});
  for (int step = 0; step < kSteps; ++step) {
    program.op("aten::gelu", 100, {w}, {2 * length, 32});
    WrittenTensor scores = program.op("aten::bmm", 400, {q, k}, {2, length, length});
    const double first = program.last_us();
    const WrittenTensor raw = scores;
    if (between == Between::kScale) scores = program.op("aten::mul", 100, {scores, {}}, scores.dims);
    if (between == Between::kSoftmax) scores = program.op("aten::_softmax", 100, {scores}, scores.dims);
    const WrittenTensor mixed = program.op("aten::bmm", 400, {scores, v}, {2, length, 32});
    const double second = program.last_us();
    if (between == Between::kSecondReader) program.op("aten::amax", 20, {raw}, {2});
    program.backward("BmmBackward0", second, "aten::bmm", 800, {mixed, v}, {2, length, length});
    program.backward("BmmBackward0", first, "aten::bmm", 800, {mixed, k}, {2, length, 32});
    program.finish_step();
  }
  return program.judged();
}

TEST(ContractionOrder, a_large_product_that_the_next_one_takes_together_is_told_first_with_its_backward_pass) {
  const Judged found = attended(Between::kNothing, 512);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "contraction-order");
  EXPECT_NE(found.findings[0].title.find("16 times less work"), std::string::npos) << found.findings[0].title;
  const auto gain = static_cast<double>(found.findings[0].gain.middle_ns());
  EXPECT_GT(gain, 1.9e6) << "more than the forward pass takes";
  EXPECT_LT(gain, 2.4e6);
}

TEST(ContractionOrder, a_factor_for_all_numbers_does_not_hinder) {
  EXPECT_NE(find(attended(Between::kScale, 512), "contraction-order"), nullptr);
}

TEST(ContractionOrder, a_softmax_or_another_reader_needs_the_large_matrix) {
  EXPECT_EQ(find(attended(Between::kSoftmax, 512), "contraction-order"), nullptr);
  EXPECT_EQ(find(attended(Between::kSecondReader, 512), "contraction-order"), nullptr);
}

TEST(ContractionOrder, the_cheaper_order_is_left_alone) {
  EXPECT_EQ(find(attended(Between::kNothing, 32), "contraction-order"), nullptr);
}

// A right factor that is itself a product: a @ (b @ c) where (a @ b) @ c has a thin middle.
TEST(ContractionOrder, a_matrix_that_is_multiplied_out_for_few_rows_is_found) {
  TensorProgram program;
  const WrittenTensor down = program.weight({512, 8});
  const WrittenTensor up = program.weight({8, 512});
  const WrittenTensor rows = program.weight({16, 512});
  for (int step = 0; step < kSteps; ++step) {
    const WrittenTensor both = program.op("aten::mm", 300, {down, up}, {512, 512});
    program.op("aten::mm", 500, {rows, both}, {16, 512});
    program.finish_step();
  }
  const Judged found = program.judged();
  const Finding* finding = find(found, "contraction-order");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->try_code.find("(a @ b) @ c  # instead"), std::string::npos) << finding->try_code;
}

// x w1, of which two rows each are one row for w2: another order would need other shapes.
TEST(ContractionOrder, a_reshape_that_joins_rows_between_two_products_was_taken_for_a_chain) {
  TensorProgram program;
  const WrittenTensor x = program.weight({512, 16});
  const WrittenTensor w1 = program.weight({16, 512});
  const WrittenTensor w2 = program.weight({1024, 8});
  for (int step = 0; step < kSteps; ++step) {
    const WrittenTensor hidden = program.op("aten::mm", 300, {x, w1}, {512, 512});
    program.op("aten::mm", 500, {hidden.seen_as({256, 1024}), w2}, {256, 8});
    program.finish_step();
  }
  EXPECT_EQ(find(program.judged(), "contraction-order"), nullptr);
}

enum class Weight { kShared, kWrittenOut, kOwn, kSameRows };

Judged batched(Weight kind, int64_t batch, int64_t rows) {
  TensorProgram program;
  const WrittenTensor x = program.weight({batch, rows, 64});
  const WrittenTensor one = program.weight({64, 64});
  const WrittenTensor own = program.weight({batch, 64, 64});
  const WrittenTensor other = program.weight({256, 256});
  for (int step = 0; step < kSteps; ++step) {
    // What this CPU reaches.
    program.op("aten::mm", 500, {other, other}, {256, 256});
    program.op("aten::gelu", 50, {other}, {256, 256});
    WrittenTensor weights = one.seen_as({batch, 64, 64}, {0, 64, 1});
    if (kind == Weight::kWrittenOut) weights = program.copy(200, weights);
    if (kind == Weight::kOwn) weights = own;
    if (kind == Weight::kSameRows) weights = own.seen_as({batch, 64, 64}, {64, 0, 1});
    program.op("aten::bmm", 1000, {x, weights}, {batch, rows, 64});
    program.finish_step();
  }
  return program.judged();
}

TEST(BroadcastOperand, one_weight_for_many_small_products_is_told_first) {
  const Judged found = batched(Weight::kShared, 256, 2);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "broadcast-operand");
  EXPECT_NE(found.findings[0].title.find("the same matrix in 256 products"), std::string::npos);
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 960e3, 100e3);
}

TEST(BroadcastOperand, a_weight_that_is_written_out_for_each_is_found_with_its_copy) {
  const Judged found = batched(Weight::kWrittenOut, 256, 2);
  const Finding* finding = find(found, "broadcast-operand");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("copied for each"), std::string::npos) << finding->title;
  EXPECT_GT(finding->gain.middle_ns(), 1'050'000);
}

TEST(BroadcastOperand, a_matrix_for_each_product_whose_rows_are_the_same_was_said_to_be_one_for_all) {
  EXPECT_EQ(find(batched(Weight::kSameRows, 256, 2), "broadcast-operand"), nullptr);
}

TEST(BroadcastOperand, weights_of_their_own_and_products_that_are_large_anyway_are_none) {
  EXPECT_EQ(find(batched(Weight::kOwn, 256, 2), "broadcast-operand"), nullptr);
  EXPECT_EQ(find(batched(Weight::kShared, 4, 2048), "broadcast-operand"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
