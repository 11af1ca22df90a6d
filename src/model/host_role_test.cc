#include "model/host_role.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane {

namespace {

TEST(HostRole, names_of_torch_say_what_a_slice_is_there_for) {
  EXPECT_EQ(role_of("ProfilerStep#3"), HostRole::kStep);
  EXPECT_EQ(role_of("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"), HostRole::kBatchInProcess);
  EXPECT_EQ(role_of("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"), HostRole::kBatchFromWorkers);
  EXPECT_EQ(role_of("enumerate(DataLoader)#MyIter.__next__"), HostRole::kBatch);
  EXPECT_EQ(role_of("enumerate(DataPipe)#MapperIterDataPipe"), HostRole::kOtherBatch);
  EXPECT_EQ(role_of("Optimizer.step#AdamW.step"), HostRole::kOptimizerStep);
  EXPECT_EQ(role_of("Optimizer.zero_grad#AdamW.zero_grad"), HostRole::kZeroGrad);
  EXPECT_EQ(role_of("autograd::engine::evaluate_function: MmBackward0"), HostRole::kBackwardNode);
  EXPECT_EQ(role_of("gc: generation 0"), HostRole::kYoungCollection);
  EXPECT_EQ(role_of("gc: generation 2"), HostRole::kFullCollection);
  EXPECT_EQ(role_of("Python GC"), HostRole::kCollection);
}

// A range that a program calls so is no update of torch's: it may hold one, which must not be counted twice.
TEST(HostRole, a_range_that_only_sounds_like_an_update_is_none) {
  EXPECT_EQ(role_of("Optimizer.step"), HostRole::kOptimizer);
  EXPECT_EQ(role_of("optimizer step"), HostRole::kNone);
  EXPECT_EQ(role_of("aten::mm"), HostRole::kNone);
  EXPECT_EQ(role_of(""), HostRole::kNone);
}

TEST(HostRole, a_loaded_trace_has_the_roles_of_its_slices_in_a_column) {
  const Model model = TraceBuilder()
                          .step(0, {.start_us = 0, .end_us = 50})
                          .op("aten::mm", {.start_us = 0, .end_us = 20})
                          .annotation("Optimizer.step#SGD.step", {.start_us = 20, .end_us = 30})
                          .build();
  EXPECT_EQ(model.host_slices.role[0], HostRole::kStep);
  EXPECT_EQ(model.host_slices.role[1], HostRole::kNone);
  EXPECT_EQ(model.host_slices.role[2], HostRole::kOptimizerStep);
}

}  // namespace

}  // namespace firelane
