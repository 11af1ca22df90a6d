// Anomaly detection: told where nodes check their gradients, and not where the program looks for NaN itself.
#include <gtest/gtest.h>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

// Three steps on a CPU: ten forward operators with a node each, and their backward nodes.
class CheckedTraining : public WrittenProgram<CheckedTraining> {
 public:
  CheckedTraining& step(bool checks_nodes, bool checks_loss, double forward_us) {
    for (int i = 0; i < 10; ++i) {
      builder_.op("aten::mul", {.start_us = at_, .end_us = at_ + forward_us, .sequence_number = number_++});
      at_ += forward_us + 2;
    }
    if (checks_loss) check(at_);
    for (int i = 0; i < 10; ++i) {
      const double end = at_ + (checks_nodes ? 80 : 30);
      builder_.op("autograd::engine::evaluate_function: MulBackward0", {.start_us = at_, .end_us = end});
      builder_.op("aten::mul", {.start_us = at_ + 2, .end_us = at_ + 28});
      double inside = at_ + 30;
      if (checks_nodes) check(inside);
      at_ = end + 2;
    }
    return end_step();
  }

 private:
  void check(double& at) {
    for (const std::string_view name : {"aten::isnan", "aten::_is_any_true", "aten::item"}) {
      builder_.op(name, {.start_us = at, .end_us = at + 14});
      at += 15;
    }
  }
  int64_t number_ = 0;
};

Judged judged_training(bool checks_nodes, bool checks_loss, double forward_us) {
  CheckedTraining training;
  for (int i = 0; i < 4; ++i) training.step(checks_nodes, checks_loss, forward_us);
  return training.judged();
}

TEST(AnomalyDetection, is_named_first_with_its_checks_and_stacks) {
  const Judged with = judged_training(true, false, 60);
  ASSERT_FALSE(with.findings.empty());
  EXPECT_EQ(with.findings[0].id, "anomaly-detection");
  EXPECT_NE(with.findings[0].title.find("10 times a step"), std::string::npos) << with.findings[0].title;
  EXPECT_GT(with.findings[0].gain.low_ns, 10 * 42'000 / 2) << "half of the checks alone";
}

TEST(AnomalyDetection, a_program_that_looks_for_nan_in_its_loss_has_it_off) {
  EXPECT_EQ(find(judged_training(false, true, 20), "anomaly-detection"), nullptr);
  EXPECT_EQ(find(judged_training(false, false, 20), "anomaly-detection"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
