// Inverses, singular values and eigenvectors of which little is used, and those that are needed.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

constexpr int64_t kMatrixBytes = 4 * 64 * 64;

// Operators on a CPU that take matrices of 64 x 64 fp32 numbers.
class Matrices : public WrittenProgram<Matrices> {
 public:
  struct Input {
    uint64_t storage = 0;
    std::string_view dims = "[64, 64]";
  };
  struct Call {
    std::vector<Input> inputs;
    std::string_view numbers = R"(["", ""])";
    int64_t made_bytes = kMatrixBytes;
    int64_t more_bytes = 0;  // of a second result
  };

  // The storage of its first result; the second one's is the next.
  uint64_t op(std::string_view name, double us, const Call& call) {
    begin(name, us, call);
    return end(us, call);
  }
  // An operator that `outer` calls, to be followed by end(us, call of the outer one).
  void begin(std::string_view name, double us, const Call& call, double at_us = 0) {
    std::string tensors = "[";
    std::string dims = "[";
    for (const Input& input : call.inputs) {
      const std::string comma = tensors.size() > 1 ? ", " : "";
      tensors += comma + "[" + std::to_string(input.storage + at_id_++) + ", " + std::to_string(input.storage) +
                 ", 0, -1, \"float\"]";
      dims += comma + std::string(input.dims);
    }
    builder_.op(name, {.start_us = at_ + at_us,
                       .end_us = at_ + at_us + us,
                       .dims = dims + ", []]",
                       .types = R"(["float", "float"])",
                       .concrete = call.numbers,
                       .tensors = tensors + "]"});
  }
  uint64_t end(double us, const Call& call) {
    const uint64_t made = next_ += 0x100'000;
    builder_.memory({.at_us = at_ + us - 1, .bytes = call.made_bytes, .address = made});
    if (call.more_bytes > 0) {
      next_ += 0x100'000;
      builder_.memory({.at_us = at_ + us - 1, .bytes = call.more_bytes, .address = next_});
    }
    at_ += us + 2;
    return made;
  }

 private:
  uint64_t next_ = 0x1000'0000;
  uint64_t at_id_ = 1;
};

constexpr Matrices::Input kMatrix = {.storage = 0x2000};
constexpr Matrices::Input kVector = {.storage = 0x9000, .dims = "[64, 1]"};

enum class Inverse { kTimesVector, kRead, kNone };
Judged inverted(Inverse use) {
  Matrices program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::gelu", 300, {.inputs = {kMatrix}});
    program.begin("aten::linalg_inv", 900, {.inputs = {kMatrix}});
    program.begin("aten::linalg_lu_factor_ex", 300, {.inputs = {kMatrix}}, 10);
    program.begin("aten::linalg_lu_solve", 500, {.inputs = {kMatrix, kMatrix}}, 320);
    const uint64_t inverse = program.end(900, {});
    if (use != Inverse::kNone) program.op("aten::matmul", 50, {.inputs = {{inverse}, kVector}, .made_bytes = 256});
    if (use == Inverse::kRead) program.op("aten::diagonal_copy", 20, {.inputs = {{inverse}}});
    program.end_step();
  }
  return program.judged();
}

TEST(MatrixDecomposition, an_inverse_for_one_product_is_told_with_the_system_of_equations_to_solve) {
  const Judged found = inverted(Inverse::kTimesVector);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "matrix-decomposition");
  EXPECT_NE(found.findings[0].title.find("multiplied by 1 column"), std::string::npos) << found.findings[0].title;
  EXPECT_NE(found.findings[0].try_code.find("linalg.solve"), std::string::npos);
  // The factors stay; of the 500 us of triangular systems little does, and the product goes.
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 450e3, 60e3);
}

TEST(MatrixDecomposition, an_inverse_that_is_read_is_named_without_a_gain) {
  for (const Inverse use : {Inverse::kRead, Inverse::kNone}) {
    const Judged found = inverted(use);
    const Finding* named = find(found, "matrix-decomposition");
    ASSERT_NE(named, nullptr);
    EXPECT_EQ(named->gain.high_ns, 0);
    EXPECT_EQ(named->confidence, Confidence::kLow);
  }
}

enum class Values { kLargest, kAll };
Judged of_singular_values(Values use) {
  Matrices program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::gelu", 300, {.inputs = {kMatrix}});
    const uint64_t values = program.op("aten::linalg_svdvals", 900, {.inputs = {kMatrix}, .made_bytes = 256});
    program.op(use == Values::kLargest ? "aten::amax" : "aten::sum", 20,
               {.inputs = {{values, "[64]"}}, .made_bytes = 64});
    program.end_step();
  }
  return program.judged();
}

TEST(MatrixDecomposition, singular_values_for_the_largest_are_told_with_the_power_method) {
  const Judged found = of_singular_values(Values::kLargest);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "matrix-decomposition");
  EXPECT_NE(found.findings[0].title.find("only the largest singular values are read"), std::string::npos)
      << found.findings[0].title;
  EXPECT_GT(found.findings[0].gain.middle_ns(), 600e3);
}

TEST(MatrixDecomposition, a_sum_of_all_singular_values_has_no_shortcut) {
  const Judged all = of_singular_values(Values::kAll);
  const Finding* named = find(all, "matrix-decomposition");
  ASSERT_NE(named, nullptr);
  EXPECT_EQ(named->gain.high_ns, 0);
}

Judged normed(std::string_view numbers) {
  Matrices program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::gelu", 300, {.inputs = {kMatrix}});
    program.begin("aten::linalg_matrix_norm", 900, {.inputs = {kMatrix}, .numbers = numbers});
    program.begin("aten::_linalg_svd", 800, {.inputs = {kMatrix}}, 10);
    program.end(900, {.made_bytes = 64});
    program.end_step();
  }
  return program.judged();
}

TEST(MatrixDecomposition, the_spectral_norm_needs_the_largest_alone_and_the_smallest_has_no_shortcut) {
  const Judged largest = normed(R"(["", "2"])");
  ASSERT_FALSE(largest.findings.empty());
  EXPECT_EQ(largest.findings[0].id, "matrix-decomposition");
  EXPECT_GT(largest.findings[0].gain.middle_ns(), 600e3);
  const Judged of_smallest = normed(R"(["", "-2"])");
  const Finding* smallest = find(of_smallest, "matrix-decomposition");
  ASSERT_NE(smallest, nullptr);
  EXPECT_EQ(smallest->gain.high_ns, 0);
}

enum class Vectors { kUnread, kRead, kInBackward };
Judged with_vectors(Vectors use) {
  Matrices program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::gelu", 300, {.inputs = {kMatrix}});
    const uint64_t values =
        program.op("aten::linalg_eigh", 900, {.inputs = {kMatrix}, .made_bytes = 256, .more_bytes = kMatrixBytes});
    program.op("aten::log", 20, {.inputs = {{values, "[64]"}}, .made_bytes = 256});
    const std::vector<Matrices::Input> vectors = {{values + 0x100'000}, kMatrix};
    if (use == Vectors::kRead) program.op("aten::matmul", 60, {.inputs = vectors});
    if (use == Vectors::kInBackward) {
      program.begin("LinalgEighBackward0", 70, {});
      program.begin("aten::matmul", 60, {.inputs = vectors}, 5);
      program.end(70, {});
    }
    program.end_step();
  }
  return program.judged();
}

TEST(MatrixDecomposition, vectors_that_nobody_reads_are_told_and_others_are_not) {
  const Judged unread = with_vectors(Vectors::kUnread);
  ASSERT_FALSE(unread.findings.empty());
  EXPECT_EQ(unread.findings[0].id, "matrix-decomposition");
  EXPECT_NE(unread.findings[0].try_code.find("eigvalsh"), std::string::npos);
  const Judged with_read = with_vectors(Vectors::kRead);
  const Finding* read = find(with_read, "matrix-decomposition");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->gain.high_ns, 0);
}

// eigvalsh computes them as well where gradients are asked for.
TEST(MatrixDecomposition, vectors_that_gradients_are_made_of_were_said_to_be_read_by_nobody) {
  const Judged differentiated = with_vectors(Vectors::kInBackward);
  const Finding* needed = find(differentiated, "matrix-decomposition");
  ASSERT_NE(needed, nullptr);
  EXPECT_EQ(needed->gain.high_ns, 0);
}

TEST(MatrixDecomposition, one_that_takes_little_of_a_step_is_not_named) {
  Matrices program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::gelu", 900, {.inputs = {kMatrix}});
    program.op("aten::linalg_eigh", 100, {.inputs = {kMatrix}});
    program.end_step();
  }
  EXPECT_EQ(find(program.judged(), "matrix-decomposition"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
