// Fourier transforms: told of lengths with a large prime factor, not of those with a plan.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

class Transforms : public WrittenProgram<Transforms> {
 public:
  Transforms& step(int64_t length) {
    const std::string places = std::to_string(length);
    op("aten::linear", 100, "[[4, 64], [64, 64]]", R"(["", ""])");
    op("aten::_fft_r2c", 300, "[[4, " + places + "]]", R"(["", "[1]", "0", "True"])");
    op("aten::_fft_c2r", 300, "[[4, " + std::to_string(length / 2 + 1) + "]]",
       R"(["", "[1]", "2", ")" + places + R"("])");
    return end_step();
  }

 private:
  void op(std::string_view name, double us, const std::string& dims, const std::string& numbers) {
    builder_.op(name,
                {.start_us = at_, .end_us = at_ + us, .dims = dims, .types = R"(["float"])", .concrete = numbers});
    at_ += us + 2;
  }
};

Judged transformed(int64_t length) {
  Transforms program;
  for (int i = 0; i < 4; ++i) program.step(length);
  return program.judged();
}

TEST(FftLength, a_prime_length_is_padded_to_one_with_a_plan) {
  const Judged found = transformed(8191);
  const Finding* finding = find(found, "fft-length");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("8191 places (a prime number)"), std::string::npos) << finding->title;
  EXPECT_NE(finding->try_text.find("to 8192"), std::string::npos) << finding->try_text;
  EXPECT_NEAR(static_cast<double>(finding->gain.middle_ns()), 600e3 * 0.8, 60e3);
}

TEST(FftLength, a_large_prime_factor_is_named) {
  const Judged found = transformed(2 * 509);
  const Finding* finding = find(found, "fft-length");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("with the prime factor 509"), std::string::npos) << finding->title;
  EXPECT_NE(finding->try_text.find("to 1024"), std::string::npos) << finding->try_text;
}

TEST(FftLength, lengths_with_a_plan_are_none) {
  EXPECT_EQ(find(transformed(8192), "fft-length"), nullptr);
  EXPECT_EQ(find(transformed(6000), "fft-length"), nullptr);
  EXPECT_EQ(find(transformed(127 * 64), "fft-length"), nullptr) << "of 127 there is one";
  EXPECT_EQ(find(transformed(101), "fft-length"), nullptr) << "short";
}

}  // namespace
}  // namespace firelane::advise
