// Sorts of which little is used: told where the few are taken or drawn, and not where the order is needed.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

enum class After { kFirstFew, kDraw, kDrawAfterTopk, kAll };

class Sampling : public WrittenProgram<Sampling> {
 public:
  Sampling& step(After after) {
    constexpr std::string_view kAll = "[[4, 2048]]";
    op("aten::linear", 200, "[[4, 64], [2048, 64]]", R"(["", ""])");
    if (after == After::kDrawAfterTopk) {
      op("aten::topk", 60, kAll, R"(["", "50", "-1"])");
      op("aten::masked_fill", 60, kAll, R"(["", "", "-inf"])");
    }
    op("aten::sort", 300, kAll, R"(["", "-1", "True"])");
    if (after == After::kFirstFew) {
      op("aten::slice", 4, kAll, R"(["", "1", "0", "50", "1"])");
      op("aten::slice", 4, kAll, R"(["", "1", "0", "50", "1"])");
      op("aten::softmax", 20, "[[4, 50]]", R"(["", "-1"])");
    } else if (after == After::kAll) {
      op("aten::slice", 4, kAll, R"(["", "1", "0", "2000", "1"])");
      op("aten::mul", 60, "[[4, 2000]]", R"(["", ""])");
    } else {
      op("aten::softmax", 60, kAll, R"(["", "-1"])");
      op("aten::cumsum", 60, kAll, R"(["", "-1"])");
      op("aten::multinomial", 100, kAll, R"(["", "1"])");
    }
    return end_step();
  }

 private:
  void op(std::string_view name, double us, std::string_view dims, std::string_view numbers) {
    builder_.op(name,
                {.start_us = at_, .end_us = at_ + us, .dims = dims, .types = R"(["float"])", .concrete = numbers});
    at_ += us + 2;
  }
};

Judged sampled_after(After after) {
  Sampling program;
  for (int i = 0; i < 4; ++i) program.step(after);
  return program.judged();
}

TEST(FullSort, the_first_few_of_a_sort_are_a_topk) {
  const Judged found = sampled_after(After::kFirstFew);
  const Finding* finding = find(found, "full-sort");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("2048 elements are sorted 1 time a step, but at most 50 of them are used"),
            std::string::npos)
      << finding->title;
  EXPECT_EQ(finding->confidence, Confidence::kMedium);
}

TEST(FullSort, a_draw_after_a_topk_takes_all_that_follows_with_it) {
  const Judged found = sampled_after(After::kDrawAfterTopk);
  const Finding* finding = find(found, "full-sort");
  ASSERT_NE(finding, nullptr);
  EXPECT_GT(finding->gain.middle_ns(), (300 + 60 + 60 + 60) * 1000) << "with what masks, adds up and draws";
  const Judged without = sampled_after(After::kDraw);
  finding = find(without, "full-sort");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->confidence, Confidence::kLow) << "how many it takes is not known";
}

TEST(FullSort, an_order_that_is_needed_is_none) { EXPECT_EQ(find(sampled_after(After::kAll), "full-sort"), nullptr); }

}  // namespace
}  // namespace firelane::advise
