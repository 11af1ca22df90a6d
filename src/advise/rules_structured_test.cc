// Products with matrices whose structure shows in how they were made.
#include <gtest/gtest.h>

#include "advise/tensor_program.h"

namespace firelane::advise {
namespace {

constexpr int kEachStep = 4;

enum class Matrix { kOneHot, kCompared, kDiagonal, kTriangle, kDense, kClassSums, kManyOfEach, kWeighted };

Judged multiplied(Matrix matrix) {
  TensorProgram program;
  const WrittenTensor ids = program.weight({256, 1});
  const WrittenTensor table = program.weight({1024, 64});
  const WrittenTensor rows = program.weight({256, 64});
  const WrittenTensor square = program.weight({512, 64});
  const WrittenTensor vector = program.weight({512});
  for (int step = 0; step < kEachStep; ++step) {
    program.op("aten::gelu", 100, {table}, {1024, 64});
    const auto times = [&](const WrittenTensor& left, const WrittenTensor& right) {
      program.op("aten::mm", 1000, {left, right}, {left.dims[0], right.dims[1]});
    };
    if (matrix == Matrix::kOneHot || matrix == Matrix::kClassSums || matrix == Matrix::kManyOfEach ||
        matrix == Matrix::kWeighted) {
      const WrittenTensor hot = program.op("aten::zeros", 20, {}, {256, 1024}, R"(["[256, 1024]"])");
      const WrittenTensor index = matrix == Matrix::kManyOfEach ? ids.seen_as({256, 4}) : ids;
      if (matrix == Matrix::kWeighted) {
        program.in_place("aten::scatter_", 50, {hot, {}, index, vector.seen_as({256, 1})}, R"(["", "1", "", ""])");
      } else {
        program.in_place("aten::scatter_", 50, {hot, {}, index, {}}, R"(["", "1", "", "1"])");
      }
      const WrittenTensor cast = program.copy(50, hot);
      if (matrix == Matrix::kClassSums) {
        times(cast.seen_as({1024, 256}, {1, 1024}), rows);
      } else {
        times(cast, table);
      }
    } else if (matrix == Matrix::kCompared) {
      const WrittenTensor range = program.op("aten::arange", 20, {}, {1024}, R"(["1024"])");
      times(program.op("aten::eq", 50, {ids, range}, {256, 1024}), table);
    } else if (matrix == Matrix::kDiagonal) {
      const WrittenTensor zeros = program.op("aten::zeros", 20, {}, {512, 512}, R"(["[512, 512]"])");
      program.in_place("aten::copy_", 20, {zeros.seen_as({512}, {513}), vector}, R"(["", "", "False"])");
      times(zeros, square);
    } else if (matrix == Matrix::kTriangle) {
      const WrittenTensor ones = program.op("aten::ones", 20, {}, {512, 512}, R"(["[512, 512]"])");
      times(program.op("aten::tril", 20, {ones}, {512, 512}), square);
    } else {
      times(program.op("aten::exp", 50, {ids.seen_as({256, 1024}, {1, 0})}, {256, 1024}), table);
    }
    program.finish_step();
  }
  return program.judged();
}

const Finding* structured(const Judged& found) { return find(found, "structured-product"); }

TEST(StructuredProduct, a_product_with_one_hot_rows_is_told_first_with_what_makes_them) {
  const Judged found = multiplied(Matrix::kOneHot);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "structured-product");
  EXPECT_NE(found.findings[0].title.find("multiplies by one-hot rows"), std::string::npos);
  EXPECT_GT(found.findings[0].gain.middle_ns(), 1'000'000);
}

TEST(StructuredProduct, comparing_with_a_range_makes_one_hot_rows_too) {
  EXPECT_NE(structured(multiplied(Matrix::kCompared)), nullptr);
}

TEST(StructuredProduct, diagonals_and_triangles_of_ones_have_remedies_of_their_own) {
  const Judged diagonal = multiplied(Matrix::kDiagonal);
  ASSERT_NE(structured(diagonal), nullptr);
  EXPECT_NE(structured(diagonal)->try_code.find("d[:, None] * x"), std::string::npos);
  const Judged triangle = multiplied(Matrix::kTriangle);
  ASSERT_NE(structured(triangle), nullptr);
  EXPECT_NE(structured(triangle)->try_code.find("cumsum"), std::string::npos);
}

// As the weights of the one expert that each word is sent to.
TEST(StructuredProduct, rows_with_one_weight_each_were_taken_for_a_lookup) {
  EXPECT_EQ(structured(multiplied(Matrix::kWeighted)), nullptr);
}

TEST(StructuredProduct, other_matrices_are_none) {
  EXPECT_EQ(structured(multiplied(Matrix::kDense)), nullptr);
  EXPECT_EQ(structured(multiplied(Matrix::kClassSums)), nullptr) << "sums of each class are faster as a product";
  EXPECT_EQ(structured(multiplied(Matrix::kManyOfEach)), nullptr) << "several ones in a row are no lookup";
}

}  // namespace
}  // namespace firelane::advise
