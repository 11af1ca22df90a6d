// Keys that are written out for every head: told with what attention reads too much, and not of other copies.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

class GroupedDecoding : public WrittenProgram<GroupedDecoding> {
 public:
  GroupedDecoding& step(std::string_view strides, int64_t queries) {
    const std::string q = "[2, 16, " + std::to_string(queries) + ", 32]";
    builder_.op("aten::linear", {.start_us = at_, .end_us = at_ + 100, .dims = "[[2, 512], [512, 512]]"});
    at_ += 102;
    for (int i = 0; i < 2; ++i) {
      builder_.op("aten::repeat_interleave", {.start_us = at_, .end_us = at_ + 100, .dims = "[[2, 2, 256, 32]]"})
          .op("aten::copy_", {.start_us = at_ + 10,
                              .end_us = at_ + 95,
                              .dims = "[[2, 2, 8, 256, 32], [2, 2, 8, 256, 32]]",
                              .types = R"(["float", "float"])",
                              .strides = strides});
      at_ += 102;
    }
    builder_.op("aten::scaled_dot_product_attention",
                {.start_us = at_, .end_us = at_ + 200, .dims = "[" + q + ", [2, 16, 256, 32], [2, 16, 256, 32]]"});
    at_ += 202;
    return end_step();
  }
};

constexpr std::string_view kExpanded = "[[131072, 65536, 8192, 32, 1], [16384, 8192, 0, 32, 1]]";
constexpr std::string_view kTurned = "[[131072, 65536, 8192, 32, 1], [131072, 65536, 32, 256, 1]]";

Judged decoded(std::string_view strides, int64_t queries) {
  GroupedDecoding program;
  for (int i = 0; i < 4; ++i) program.step(strides, queries);
  return program.judged();
}

TEST(RepeatedKeys, are_told_with_what_attention_reads_too_much) {
  const Judged one = decoded(kExpanded, 1);
  const Finding* finding = find(one, "repeated-keys");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("written out 8 times"), std::string::npos) << finding->title;
  const Judged many = decoded(kExpanded, 256);
  ASSERT_NE(find(many, "repeated-keys"), nullptr);
  EXPECT_GT(finding->gain.middle_ns(), find(many, "repeated-keys")->gain.middle_ns() + 80'000)
      << "of many queries attention computes, which stays";
}

TEST(RepeatedKeys, another_order_of_elements_is_none) {
  EXPECT_EQ(find(decoded(kTurned, 1), "repeated-keys"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
