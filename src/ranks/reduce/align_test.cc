#include "ranks/reduce/align.h"

#include <gtest/gtest.h>

#include <numeric>

namespace firelane::ranks {
namespace {

std::vector<CollectiveRow> rows_of_steps(const std::vector<int64_t>& late_ns) {
  constexpr int64_t kStepNs = 20'000'000;
  std::vector<CollectiveRow> out;
  for (size_t i = 0; i < late_ns.size(); ++i) {
    const int64_t end_ns = static_cast<int64_t>(i) * kStepNs + late_ns[i];
    out.push_back({.start_ns = end_ns - 10'000, .end_ns = end_ns});
  }
  return out;
}

// Row i of the other was made from step i + 1 of the reference, and noise: the shift by one step is three to four times
// smoother than none. Among 4,096 ranks that happens to one for which none is right.
TEST(Align, eleven_rows_that_are_smoother_under_one_shift_decide_nothing_among_4096_ranks) {
  const std::vector<CollectiveRow> reference =
      rows_of_steps({0, -3'543, -7'474, -10'824, -7'211, -4'419, -7'787, -11'031, -8'240, -11'193, -13'796, -17'388});
  const std::vector<CollectiveRow> other =
      rows_of_steps({-5'474, -8'009, -11'249, -6'923, -3'377, -8'278, -11'335, -7'605, -10'218, -14'065, -17'433});
  RowList all(reference.size());
  std::iota(all.begin(), all.end(), 0u);
  const RowList eleven(all.begin(), all.end() - 1);
  const Lane a{&reference, &all};
  const Lane b{&other, &eleven};
  const std::vector<Signature> signatures = {{.op = Collective::kAllReduce, .size_key = 1}};
  const Alignment among_many = align(a, b, signatures, {.within_ns = 50'000'000, .ranks = 4'096});
  EXPECT_FALSE(among_many.certain);
  EXPECT_TRUE(among_many.several);
  // With two ranks it is not a coincidence.
  const Alignment of_two = align(a, b, signatures, {.within_ns = 50'000'000, .ranks = 2});
  EXPECT_TRUE(of_two.certain);
  EXPECT_EQ(of_two.reference[0], 1);
}

}  // namespace
}  // namespace firelane::ranks
