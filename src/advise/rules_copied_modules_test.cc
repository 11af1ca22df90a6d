// Models that are copied whole: told where each tensor gets new memory, and not where copies are kept.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

enum class Copying { kDeep, kClones, kAveraged, kIntoKept, kOnce };

// Four steps on a CPU: a forward operator, and twenty tensors that are copied one by one with Python between them.
class GuardedTraining : public WrittenProgram<GuardedTraining> {
 public:
  GuardedTraining& step(Copying how, bool copies) {
    op("aten::linear", 800, "[[64, 64], [64, 64]]", R"(["float", "float"])");
    for (int i = 0; copies && i < 20; ++i) {
      if (how == Copying::kDeep || how == Copying::kOnce) {
        op("aten::empty", 4, "[[]]", R"(["ScalarList"])");
        op("aten::set_", 4, "[[0], []]", R"(["unsigned char", ""])");
      }
      if (how == Copying::kClones || how == Copying::kAveraged) {
        op("aten::clone", 8, "[[32, 32]]", R"(["float"])");
      } else {
        op("aten::copy_", 6, "[[4096], [4096]]", R"(["unsigned char", "unsigned char"])");
      }
      at_ += 30;
    }
    for (int i = 0; how == Copying::kAveraged && i < 20; ++i) {
      for (const char* name : {"aten::mul", "aten::mul", "aten::add"}) {
        op(name, 8, "[[32, 32], []]", R"(["float", "Scalar"])");
      }
      at_ += 10;
    }
    for (int i = 0; how == Copying::kAveraged && i < 20; ++i) {
      op("aten::copy_", 8, "[[32, 32], [32, 32]]", R"(["float", "float"])");
      at_ += 10;
    }
    return end_step();
  }

 private:
  void op(std::string_view name, double us, std::string_view dims, std::string_view types) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + us, .dims = dims, .types = types});
    at_ += us + 1;
  }
};

Judged guarded(Copying how) {
  GuardedTraining training;
  for (int i = 0; i < 4; ++i) training.step(how, how != Copying::kOnce || i == 2);
  return training.judged();
}

TEST(CopiedModules, a_copy_of_every_tensor_in_every_step_is_told) {
  for (const Copying how : {Copying::kDeep, Copying::kClones}) {
    const Judged found = guarded(how);
    const Finding* finding = find(found, "copied-modules");
    ASSERT_NE(finding, nullptr);
    EXPECT_NE(finding->title.find("20 tensors one by one, 80.0 KiB"), std::string::npos) << finding->title;
    EXPECT_GT(finding->gain.middle_ns(), 20 * 25'000) << "most of it is Python";
  }
}

TEST(CopiedModules, averages_that_are_made_of_the_copies_go_with_them) {
  const Judged found = guarded(Copying::kAveraged);
  const Finding* finding = find(found, "copied-modules");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("to average its weights: 20 tensors one by one"), std::string::npos) << finding->title;
  EXPECT_NE(finding->try_code.find("_foreach_lerp_"), std::string::npos);
  EXPECT_GT(finding->gain.middle_ns(), 20 * (35'000 + 30'000 + 15'000)) << "with what is computed and loaded";
}

TEST(CopiedModules, copies_that_are_kept_and_those_now_and_then_are_none) {
  EXPECT_EQ(find(guarded(Copying::kIntoKept), "copied-modules"), nullptr);
  EXPECT_EQ(find(guarded(Copying::kOnce), "copied-modules"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
