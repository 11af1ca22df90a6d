// Optimizers that step one after the other.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

struct Training {
  int optimizers = 8;
  std::string_view other;         // the class of every second one; empty: as the first
  bool backward_between = false;  // each has a backward pass of its own
  bool on_device = true;
};

class Optimized : public WrittenProgram<Optimized> {
 public:
  explicit Optimized(const Training& training) : training_(training) {}

  Judged run() {
    for (int step = 0; step < 4; ++step) {
      for (int i = 0; i < 10; ++i) op("aten::linear");
      if (!training_.backward_between) backward();
      for (int i = 0; i < training_.optimizers; ++i) {
        if (training_.backward_between) backward();
        const double start = at_;
        at_ += 60;  // a loop over parameters in Python
        op("aten::_fused_adamw_");
        const bool other = i % 2 == 1 && !training_.other.empty();
        builder_.annotation(other ? training_.other : "Optimizer.step#AdamW.step", {.start_us = start, .end_us = at_});
        at_ += 5;
      }
      end_step();
    }
    return judged();
  }

 private:
  void op(std::string_view name) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + 30});
    if (training_.on_device) {
      builder_.call("cudaLaunchKernel", {.start_us = at_ + 20, .end_us = at_ + 26, .correlation = correlation_});
      builder_.kernel("k", {.start_us = at_ + 28, .end_us = at_ + 33, .correlation = correlation_++});
    }
    at_ += 40;
  }
  void backward() {
    for (int i = 0; i < 10; ++i) op("autograd::engine::evaluate_function: AddmmBackward0");
  }

  Training training_;
};

TEST(ManyOptimizers, that_step_in_a_row_are_told_with_their_number) {
  const Judged judged = Optimized({}).run();
  const Finding* finding = find(judged, "many-optimizers");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding, judged.findings.data());
  EXPECT_TRUE(finding->title.starts_with("8 optimizers step one after the other")) << finding->title;
  // 7 of them take 105 us each, of which a fifth to a half stays.
  EXPECT_GT(finding->gain.middle_ns(), 350'000);
  EXPECT_LT(finding->gain.middle_ns(), 700'000);
}

TEST(ManyOptimizers, on_a_cpu_what_they_compute_stays) {
  const Judged judged = Optimized({.on_device = false}).run();
  const Finding* finding = find(judged, "many-optimizers");
  ASSERT_NE(finding, nullptr);
  EXPECT_LT(finding->gain.middle_ns(), find(Optimized({}).run(), "many-optimizers")->gain.middle_ns());
}

TEST(ManyOptimizers, few_of_other_kinds_and_those_with_passes_between_them_are_none) {
  EXPECT_EQ(find(Optimized({.optimizers = 3}).run(), "many-optimizers"), nullptr) << "a generator and its judges";
  EXPECT_EQ(find(Optimized({.other = "Optimizer.step#SGD.step"}).run(), "many-optimizers"), nullptr);
  EXPECT_EQ(find(Optimized({.backward_between = true}).run(), "many-optimizers"), nullptr) << "another algorithm";
}

struct Grouping {
  int groups = 24;
  int tensors = 1;  // of each
  bool on_device = false;
  double update_us = 4;
};

class Grouped : public WrittenProgram<Grouped> {
 public:
  Judged of(const Grouping& what) {
    std::string list;
    for (int i = 0; i < what.tensors; ++i) list += std::string(i == 0 ? "" : ", ") + R"([1, 4096, 0, -1, "float"])";
    const std::string tensors = "[[" + list + "], null]";
    for (int step = 0; step < 4; ++step) {
      op("aten::linear", 400, what.on_device, {});
      const double start = at_;
      for (int group = 0; group < what.groups; ++group) {
        at_ += 15;  // Python prepares its lists
        op("aten::_foreach_add_", 5, what.on_device, tensors);
        op("aten::_fused_adamw_", what.update_us, what.on_device, tensors);
      }
      builder_.annotation("Optimizer.step#AdamW.step", {.start_us = start, .end_us = at_});
      end_step();
    }
    return judged();
  }

 private:
  void op(std::string_view name, double us, bool on_device, std::string_view tensors) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + us, .tensors = tensors});
    if (on_device) {
      builder_.call("cudaLaunchKernel", {.start_us = at_ + 1, .end_us = at_ + 3, .correlation = correlation_});
      builder_.kernel("k", {.start_us = at_ + 4, .end_us = at_ + 6, .correlation = correlation_++});
    }
    at_ += us + 1;
  }
};

TEST(ManyGroups, a_group_for_each_parameter_is_told_with_their_number) {
  const Judged judged = Grouped().of({});
  const Finding* finding = find(judged, "many-groups");
  ASSERT_NE(finding, nullptr);
  EXPECT_TRUE(finding->title.starts_with("AdamW updates 24 small parameter groups")) << finding->title;
  // 23 groups of 26 us.
  EXPECT_GT(finding->gain.middle_ns(), 300'000);
  EXPECT_LT(finding->gain.middle_ns(), 600'000);
  EXPECT_NE(find(Grouped().of({.on_device = true}), "many-groups"), nullptr);
}

TEST(ManyGroups, what_updates_compute_stays_on_a_cpu) {
  const auto gain_ns = [](double update_us) {
    const Judged judged = Grouped().of({.update_us = update_us});
    return find(judged, "many-groups")->gain.middle_ns();
  };
  EXPECT_LT(gain_ns(54) - gain_ns(4), 23 * 25'000) << "of 50 us more for each of 23 groups";
}

TEST(ManyGroups, few_groups_and_those_of_many_parameters_are_none) {
  EXPECT_EQ(find(Grouped().of({.groups = 4}), "many-groups"), nullptr);
  EXPECT_EQ(find(Grouped().of({.tensors = 12}), "many-groups"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
