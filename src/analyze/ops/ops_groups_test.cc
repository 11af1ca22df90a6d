// Rows of the ops table by shape and by stack, and their FLOPs.
#include "analyze/ops/ops.h"

#include <gtest/gtest.h>

#include <string>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

TEST(Ops, grouped_by_shape_rows_split_and_lists_of_tensors_count_as_no_shape) {
  const Model m = TraceBuilder()
                      .op("aten::cat", {.start_us = 0, .end_us = 1, .dims = "[[[2, 3], [4]], []]"})
                      .op("aten::mm", {.start_us = 2, .end_us = 3, .dims = "[[2,3],[3,4]]"})
                      .op("aten::mm", {.start_us = 4, .end_us = 5, .dims = "[[2, 3], [3, 4]]"})
                      .op("aten::mm", {.start_us = 6, .end_us = 7, .dims = "[[2, 3], [3, 5]]"})
                      .annotation("step", {.start_us = 8, .end_us = 9})
                      .build();
  std::string text;
  for (const OpsRow& row : ops(m, {.group_by_input_shape = true}).rows)
    text += row.name + " " + row.input_shapes + " " + std::to_string(row.count) + "\n";
  EXPECT_EQ(text,
            "aten::cat [[], []] 1\n"
            "aten::mm [[2, 3], [3, 4]] 2\n"
            "aten::mm [[2, 3], [3, 5]] 1\n"
            "step [] 1\n");
  EXPECT_EQ(ops(m).rows.size(), 3u);
}

TEST(Ops, grouped_by_stack_frames_come_from_python_slices_innermost_first) {
  const Model m = TraceBuilder()
                      .python("train.py(9): main", {.start_us = 0, .end_us = 100})
                      .python("net.py(3): forward", {.start_us = 10, .end_us = 50})
                      .op("f", {.start_us = 20, .end_us = 30})
                      .op("g", {.start_us = 22, .end_us = 24})
                      .op("f", {.start_us = 60, .end_us = 70})
                      .build();
  const OpsResult result = ops(m, {.group_by_stack = 2});
  ASSERT_EQ(result.rows.size(), 3u);
  EXPECT_EQ(result.rows[0].stack, (std::vector<std::string>{"net.py(3): forward", "train.py(9): main"}));
  EXPECT_EQ(result.rows[1].stack, result.rows[0].stack);
  EXPECT_EQ(result.rows[2].stack, (std::vector<std::string>{"train.py(9): main"}));
  EXPECT_EQ(ops(m, {.group_by_stack = 1}).rows[0].stack.size(), 1u);
}

TEST(Ops, the_traces_own_stack_wins_and_autograds_entry_is_hidden) {
  const Model m =
      TraceBuilder()
          .python("outer.py(1): x", {.start_us = 0, .end_us = 100})
          .op("f",
              {.start_us = 10, .end_us = 20, .stack = "a.py(1): a;torch/autograd/__init__.py(9): backward;b.py(2): b"})
          .build();
  EXPECT_EQ(ops(m, {.group_by_stack = 5}).rows[0].stack, (std::vector<std::string>{"a.py(1): a", "b.py(2): b"}));
}

TEST(Ops, backward_ops_show_the_stack_of_their_forward) {
  const Model m =
      TraceBuilder()
          .python("net.py(3): forward", {.start_us = 0, .end_us = 30})
          .op("aten::mul", {.start_us = 10, .end_us = 20, .sequence_number = 4, .forward_thread = 0})
          .op("MulBackward0", {.start_us = 50, .end_us = 90, .thread = 2, .sequence_number = 4, .forward_thread = 1})
          .op("aten::mul", {.start_us = 60, .end_us = 70, .thread = 2})
          .flow("fwdbwd", 1, {.start_us = 10}, {.start_us = 50, .thread = 2})
          .build();
  const OpsResult result = ops(m, {.group_by_stack = 1});
  EXPECT_EQ(row_of(result, "MulBackward0").stack, (std::vector<std::string>{"net.py(3): forward"}));
  EXPECT_EQ(row_of(result, "aten::mul").count, 2);  // both have the same stack now
}

TEST(Ops, device_work_shows_the_stack_of_its_launch) {
  const Model m = TraceBuilder()
                      .python("net.py(3): forward", {.start_us = 0, .end_us = 30})
                      .op("aten::mm", {.start_us = 10, .end_us = 20, .external_id = 1})
                      .call("cudaLaunchKernel", {.start_us = 12, .end_us = 14, .correlation = 5, .external_id = 1})
                      .kernel("gemm", {.start_us = 40, .end_us = 50, .correlation = 5, .external_id = 1})
                      .build();
  EXPECT_EQ(row_of(ops(m, {.group_by_stack = 3}), "gemm", true).stack,
            (std::vector<std::string>{"net.py(3): forward"}));
}

TEST(Ops, a_call_on_a_thread_without_python_shows_the_stack_of_its_op) {
  const Model m =
      TraceBuilder()
          .op("aten::sum", {.start_us = 10, .end_us = 20, .thread = 2, .external_id = 1, .stack = "a.py(1): f"})
          .call("cudaLaunchKernel", {.start_us = 12, .end_us = 14, .thread = 2, .external_id = 1})
          .build();
  EXPECT_EQ(row_of(ops(m, {.group_by_stack = 1}), "cudaLaunchKernel").stack, (std::vector<std::string>{"a.py(1): f"}));
}

TEST(Ops, flops_are_torchs_per_op_and_ours_add_up_over_the_tree) {
  const Model m = TraceBuilder()
                      .annotation("step", {.start_us = 0, .end_us = 100})
                      .op("aten::linear", {.start_us = 10, .end_us = 50, .dims = "[[8, 16], [32, 16], [32]]"})
                      .op("aten::addmm", {.start_us = 20, .end_us = 40, .dims = "[[32], [8, 16], [16, 32], [], []]"})
                      .op("aten::mm", {.start_us = 60, .end_us = 70, .dims = "[[2, 3], [3, 4]]"})
                      .build();
  const OpsResult result = ops(m);
  const int64_t gemm = 2 * 8 * 16 * 32;
  EXPECT_EQ(row_of(result, "aten::linear").flops, 0);
  EXPECT_EQ(row_of(result, "aten::linear").flops_total, gemm);
  EXPECT_EQ(row_of(result, "aten::linear").self_flops, 0);
  EXPECT_EQ(row_of(result, "aten::addmm").flops, gemm);
  EXPECT_EQ(row_of(result, "aten::addmm").self_flops, gemm);
  EXPECT_EQ(row_of(result, "step").flops, 0);
  EXPECT_EQ(row_of(result, "step").flops_total, gemm + 2 * 2 * 3 * 4);
  EXPECT_FALSE(result.has_flops);  // nobody asked the recorder for them
}

TEST(Ops, flops_of_the_trace_win_over_the_formulas) {
  const Model m =
      TraceBuilder().op("aten::mm", {.start_us = 0, .end_us = 1, .flops = 5, .dims = "[[2, 3], [3, 4]]"}).build();
  EXPECT_EQ(row_of(ops(m), "aten::mm").flops, 5);
  EXPECT_TRUE(ops(m).has_flops);
}

}  // namespace
}  // namespace firelane::analyze
