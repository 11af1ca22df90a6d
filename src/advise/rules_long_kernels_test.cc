// Convolutions with long kernels, and those that are fast as they are.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

class Filters : public WrittenProgram<Filters> {
 public:
  void op(std::string_view name, double us, std::string_view dims, std::string_view numbers) {
    builder_.op(
        name,
        {.start_us = at_, .end_us = at_ + us, .dims = dims, .types = R"(["float", "float"])", .concrete = numbers});
    at_ += us + 4;
  }
};

constexpr std::string_view kLong = "[[2, 1, 8192], [8, 1, 512], [], [], [], [], [], [], []]";
constexpr std::string_view kShort = "[[2, 64, 8192], [64, 64, 9], [], [], [], [], [], [], []]";
constexpr std::string_view kDense = R"(["", "", "", "[1]", "[511]", "[1]", "False", "[0]", "1"])";
constexpr std::string_view kSparse = R"(["", "", "", "[256]", "[0]", "[1]", "False", "[0]", "1"])";

Judged filtered(double us, std::string_view dims, std::string_view numbers, bool learns = false) {
  Filters program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::gelu", 2000, "[[2, 1, 8192], []]", R"(["", ""])");
    program.op("aten::convolution", us, dims, numbers);
    if (learns) {
      program.op("aten::convolution_backward", us,
                 "[[2, 8, 8703], [2, 1, 8192], [8, 1, 512], [], [], [], [], [], [], [], []]",
                 R"(["", "", "", "[0]", "[1]", "[511]", "[1]", "False", "[0]", "1", "[False, True, False]"])");
    }
    program.end_step();
  }
  return program.judged();
}

TEST(SlowConvolution, a_kernel_of_hundreds_of_weights_is_told_with_fourier_transforms) {
  const Judged found = filtered(6000, kLong, kDense);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "slow-convolution");
  EXPECT_NE(found.findings[0].title.find("kernels of 512 weights"), std::string::npos) << found.findings[0].title;
  EXPECT_GT(found.findings[0].gain.middle_ns(), 3e6);
  EXPECT_LT(found.findings[0].gain.middle_ns(), 6e6);
}

TEST(SlowConvolution, gradients_of_the_kernel_count_too) {
  const Judged found = filtered(6000, kLong, kDense, true);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "slow-convolution");
  EXPECT_GT(found.findings[0].gain.middle_ns(), 7e6);
}

// torch convolves without turning the kernel around.
TEST(SlowConvolution, the_code_to_try_was_that_of_a_kernel_turned_around) {
  EXPECT_NE(filtered(6000, kLong, kDense).findings[0].try_code.find("k.flip(-1)"), std::string::npos);
}

TEST(SlowConvolution, sizes_of_a_broken_trace_were_no_numbers) {
  for (const std::string_view dims :
       {"[[2, 1, -8192], [8, 1, 512], [], [], [], [], [], [], []]",
        "[[2, 1, 9223372036854775807], [8, 1, 9223372036854775807], [], [], [], [], [], [], []]"}) {
    EXPECT_EQ(find(filtered(6000, dims, kDense), "slow-convolution"), nullptr) << dims;
  }
}

// Five by five by five weights, and a first choice of algorithm that takes very long.
TEST(SlowConvolution, an_algorithm_that_is_slow_for_its_size_is_none) {
  EXPECT_EQ(find(filtered(60'000, "[[2, 4, 24, 24, 24], [4, 4, 5, 5, 5], [], [], [], [], [], [], []]",
                          R"(["", "", "", "[1, 1, 1]", "[2, 2, 2]", "[1, 1, 1]", "False", "[0]", "1"])"),
                 "slow-convolution"),
            nullptr);
}

TEST(SlowConvolution, short_kernels_strides_and_what_is_fast_are_none) {
  EXPECT_EQ(find(filtered(6000, kShort, kDense), "slow-convolution"), nullptr);
  EXPECT_EQ(find(filtered(6000, kLong, kSparse), "slow-convolution"), nullptr) << "most places are left out";
  EXPECT_EQ(find(filtered(1500, kLong, kDense), "slow-convolution"), nullptr) << "transforms take about as long";
}

}  // namespace
}  // namespace firelane::advise
