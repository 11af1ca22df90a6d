// Gradients of slices that are each written into zeros, and what only looks like it.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

struct Slices {
  int count = 16;
  bool of_one = true;                   // tensor; else of one each
  std::string_view part = "[[64, 4]]";  // of [64, 256]
};

class Sliced : public WrittenProgram<Sliced> {
 public:
  Judged of(const Slices& what) {
    int64_t number = 0;
    for (int step = 0; step < 4; ++step) {
      const int64_t first = number;
      op("aten::mm", 400, {});
      for (int i = 0; i < what.count; ++i) {
        const uint64_t storage = what.of_one ? 0x1000 : 0x1000 * (static_cast<uint64_t>(i) + 1);
        const std::string tensors = "[[7, " + std::to_string(storage) + ", 0, -1, \"float\"]]";
        builder_.op("aten::slice", {.start_us = at_,
                                    .end_us = at_ + 3,
                                    .sequence_number = number++,
                                    .dims = "[[64, 256]]",
                                    .types = R"(["float"])",
                                    .tensors = tensors});
        at_ += 4;
      }
      for (int64_t node = number - 1; node >= first; --node) {
        builder_.op("autograd::engine::evaluate_function: SliceBackward0",
                    {.start_us = at_, .end_us = at_ + 40, .sequence_number = node});
        builder_.op("aten::slice_backward",
                    {.start_us = at_ + 2, .end_us = at_ + 38, .dims = what.part, .types = R"(["float"])"});
        at_ += 42;
      }
      end_step();
    }
    return judged();
  }

 private:
  void op(std::string_view name, double us, std::string_view dims) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + us, .dims = dims});
    at_ += us + 1;
  }
};

TEST(SlicedGradients, slices_of_one_tensor_are_told_with_their_number) {
  const Judged judged = Sliced().of({});
  const Finding* finding = find(judged, "repeated-operators");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("16 slices of one tensor"), std::string::npos) << finding->title;
  EXPECT_NE(finding->title.find("(SliceBackward0)"), std::string::npos) << finding->title;
  EXPECT_NE(finding->try_code.find("unbind"), std::string::npos);
  // Of 16 nodes of 42 us, half to four fifths.
  EXPECT_GT(finding->gain.middle_ns(), 300'000);
  EXPECT_LT(finding->gain.middle_ns(), 620'000);
}

TEST(SlicedGradients, few_slices_large_ones_and_those_of_other_tensors_are_none) {
  EXPECT_EQ(find(Sliced().of({.count = 6}), "repeated-operators"), nullptr);
  EXPECT_EQ(find(Sliced().of({.of_one = false}), "repeated-operators"), nullptr) << "such as halves in each layer";
  EXPECT_EQ(find(Sliced().of({.part = "[[64, 200]]"}), "repeated-operators"), nullptr) << "there are few zeros";
}

}  // namespace
}  // namespace firelane::advise
