// Results of which the order alone is read, and those that are needed.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

constexpr uint64_t kHidden = 0x2000;  // made before the recording, as are the weights
constexpr uint64_t kUnreadWeights = 0x3000;

// Operators on a CPU that make tensors of fp32 numbers and give them back.
class Scores : public WrittenProgram<Scores> {
 public:
  struct Tensor {
    uint64_t storage = 0;
    std::string dims;
  };

  Tensor op(std::string_view name, double us, const Tensor& input, const Tensor& made, std::string_view numbers) {
    const std::string tensors =
        "[[" + std::to_string(input.storage + at_id_++) + ", " + std::to_string(input.storage) + ", 0, -1, \"float\"]]";
    const std::string dims = "[" + input.dims + ", []]";
    builder_.op(name, {.start_us = at_,
                       .end_us = at_ + us,
                       .dims = dims,
                       .types = R"(["float", "Scalar"])",
                       .concrete = numbers,
                       .tensors = tensors});
    if (made.storage != 0) builder_.memory({.at_us = at_ + 1, .bytes = 4 * 64 * 1000, .address = made.storage});
    at_ += us + 2;
    return made;
  }
  void free(uint64_t storage) {
    builder_.memory({.at_us = at_, .bytes = -4 * 64 * 1000, .address = storage});
    at_ += 1;
  }
  uint64_t next() { return next_ += 0x100'000; }

 private:
  uint64_t next_ = 0x1000'0000;
  uint64_t at_id_ = 1;
};

enum class Reads { kArgmax, kOtherDim, kValues };
Judged chosen(Reads reads) {
  Scores program;
  for (int step = 0; step < 4; ++step) {
    const Scores::Tensor shares{program.next(), "[64, 1000]"};
    program.op("aten::linear", 300, {kHidden, "[64, 32]"}, {program.next(), ""}, R"(["", ""])");
    program.op("aten::softmax", 400, {kUnreadWeights, "[64, 1000]"}, shares, R"(["", "-1"])");
    program.op("aten::argmax", 20, shares, {program.next(), ""},
               reads == Reads::kOtherDim ? R"(["", "0"])" : R"(["", "1"])");
    if (reads == Reads::kValues) program.op("aten::mul", 20, shares, {program.next(), ""}, R"(["", "2"])");
    program.free(shares.storage);
    program.end_step();
  }
  return program.judged();
}

TEST(OrderPreservingWork, a_softmax_before_argmax_is_told_first) {
  const Judged found = chosen(Reads::kArgmax);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "order-preserving-work");
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 400e3, 40e3);
}

TEST(OrderPreservingWork, probabilities_that_are_used_are_none) {
  EXPECT_EQ(find(chosen(Reads::kOtherDim), "order-preserving-work"), nullptr) << "another one is the largest";
  EXPECT_EQ(find(chosen(Reads::kValues), "order-preserving-work"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
