// Activations that are computed again: told with what memory allows, and not of a backward pass that only goes back.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

struct Checkpointed {
  bool recomputes = true;
  bool shapes = true;
  int64_t free_bytes = 0;  // of a device of 1,000,000 bytes; 0: none is recorded
};

// Four steps on a CPU or a device: four layers of three operators, and a backward node each that may compute them
// again.
class CheckpointedTraining : public WrittenProgram<CheckpointedTraining> {
 public:
  explicit CheckpointedTraining(const Checkpointed& what) : what_(what) {
    if (what.free_bytes > 0) builder_.device({.id = 0, .name = "NVIDIA H200", .total_memory_bytes = 1'000'000});
  }
  CheckpointedTraining& step() {
    for (int layer = 0; layer < 4; ++layer) forward(at_, false);
    for (int layer = 0; layer < 4; ++layer) {
      const double from = at_;
      at_ += 5;
      if (what_.recomputes) forward(at_, true);
      op(at_, "aten::mm", "[[64, 64], [64, 64]]");
      builder_.op("autograd::engine::evaluate_function: AddmmBackward0", {.start_us = from, .end_us = at_});
    }
    return end_step();
  }

 private:
  void forward(double& at, bool again) {
    op(at, "aten::layer_norm", "[[8, 64], [64]]");
    op(at, "aten::linear", "[[8, 64], [64, 64]]");
    if (again) {
      const double made = at - 30;  // inside of aten::linear
      const int64_t used = 1'000'000 - what_.free_bytes;
      const bool on_device = what_.free_bytes > 0;
      builder_.memory({.at_us = made,
                       .bytes = 40'000,
                       .device_type = on_device ? 1 : 0,
                       .device = on_device ? 0 : -1,
                       .address = next_ += 0x1000,
                       .total_allocated = used,
                       .total_reserved = on_device ? used : kNoNumber});
    }
    op(at, "aten::gelu", "[[8, 64]]");
  }
  void op(double& at, std::string_view name, std::string_view dims) {
    builder_.op(name, {.start_us = at, .end_us = at + 40, .external_id = id_, .dims = what_.shapes ? dims : ""});
    if (what_.free_bytes > 0) {
      builder_.call("cudaLaunchKernel", {.start_us = at + 5, .end_us = at + 9, .correlation = id_, .external_id = id_})
          .kernel("kernel", {.start_us = at + 10, .end_us = at + 48, .correlation = id_, .external_id = id_});
    }
    ++id_;
    at += 50;
  }
  Checkpointed what_;
  int64_t id_ = 1;
  uint64_t next_ = 0x10'0000;
};

Judged judged_checkpointed(const Checkpointed& what) {
  CheckpointedTraining training(what);
  for (int i = 0; i < 4; ++i) training.step();
  return training.judged();
}

TEST(RecomputedActivations, are_told_with_what_they_take) {
  const Judged found = judged_checkpointed({});
  const Finding* finding = find(found, "recomputed-activations");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("4 parts of the model"), std::string::npos) << finding->title;
  EXPECT_GT(finding->gain.middle_ns(), 4 * 3 * 40'000);
  EXPECT_TRUE(finding->try_text.starts_with("if memory allows it")) << finding->try_text;
}

TEST(RecomputedActivations, a_backward_pass_that_only_goes_back_is_none) {
  EXPECT_EQ(find(judged_checkpointed({.recomputes = false}), "recomputed-activations"), nullptr);
  EXPECT_EQ(find(judged_checkpointed({.shapes = false}), "recomputed-activations"), nullptr)
      << "three names alone may be the backward pass's own";
}

TEST(RecomputedActivations, free_memory_decides_what_to_try) {
  const Judged much = judged_checkpointed({.free_bytes = 600'000});
  const Finding* finding = find(much, "recomputed-activations");
  ASSERT_NE(finding, nullptr);
  EXPECT_TRUE(finding->try_text.starts_with("there is memory to keep them")) << finding->try_text;
  const Judged tight = judged_checkpointed({.free_bytes = 100'000});
  EXPECT_EQ(find(tight, "recomputed-activations"), nullptr) << "that is what checkpointing is for";
}

}  // namespace
}  // namespace firelane::advise
