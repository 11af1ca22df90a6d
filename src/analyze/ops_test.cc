// The rules of the ops table, one by one, on traces small enough to add up by hand.
#include "analyze/ops.h"

#include <gtest/gtest.h>

#include <string>

#include "model/trace_builder.h"

namespace firelane {
namespace {

// The row of that name; the first one on that side.
OpsRow row_of(const OpsResult& result, std::string_view name, bool on_device = false) {
  for (const OpsRow& row : result.rows)
    if (row.name == name && row.on_device == on_device) return row;
  ADD_FAILURE() << "no row " << name;
  return {};
}

// "name count self/total" of every row, in us, in order.
std::string host_times(const OpsResult& result) {
  std::string out;
  for (const OpsRow& row : result.rows) {
    if (row.on_device) continue;
    out += row.name + " " + std::to_string(row.count) + " " + std::to_string(row.self_cpu_time_total_ns / 1000) + "/" +
           std::to_string(row.cpu_time_total_ns / 1000) + "\n";
  }
  return out;
}

TEST(Ops, self_time_is_total_less_the_direct_children) {
  const Model m = TraceBuilder()
                      .op("outer", {.start_us = 0, .end_us = 100})
                      .op("middle", {.start_us = 10, .end_us = 60})
                      .op("inner", {.start_us = 20, .end_us = 30})
                      .op("inner", {.start_us = 40, .end_us = 45})
                      .op("last", {.start_us = 70, .end_us = 90})
                      .build();
  const OpsResult result = ops(m);
  EXPECT_EQ(host_times(result),
            "outer 1 30/100\n"
            "middle 1 35/50\n"
            "inner 2 15/15\n"
            "last 1 20/20\n");
  EXPECT_EQ(result.self_cpu_time_total_ns, 100'000);
}

TEST(Ops, rows_come_in_the_order_of_their_first_events_on_all_threads) {
  const Model m = TraceBuilder()
                      .op("b", {.start_us = 20, .end_us = 30, .thread = 1})
                      .op("a", {.start_us = 10, .end_us = 12, .thread = 2})
                      .kernel("k", {.start_us = 15, .end_us = 16})
                      .op("a", {.start_us = 40, .end_us = 42, .thread = 1})
                      .build();
  std::string names;
  for (const OpsRow& row : ops(m).rows) names += row.name;
  EXPECT_EQ(names, "akb");
}

TEST(Ops, overloads_are_rows_of_their_own_when_asked) {
  const Model model = TraceBuilder()
                          .op("aten::add", {.start_us = 0, .end_us = 1, .overload = "Tensor"})
                          .op("aten::add", {.start_us = 2, .end_us = 3, .overload = "Scalar"})
                          .op("aten::add", {.start_us = 4, .end_us = 5, .overload = "Tensor"})
                          .op("aten::mm", {.start_us = 6, .end_us = 7})
                          .build();
  const auto rows = ops(model, {.group_by_overload = true}).rows;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name + "." + rows[0].overload, "aten::add.Tensor");
  EXPECT_EQ(rows[0].count, 2);
  EXPECT_EQ(rows[1].overload, "Scalar");
  EXPECT_EQ(rows[2].overload, "");
  EXPECT_EQ(ops(model).rows.size(), 2u);
  EXPECT_EQ(ops(model).rows[0].overload, "");
}

TEST(Ops, a_slice_that_outlives_the_open_one_is_not_its_child) {
  const Model m = TraceBuilder()
                      .op("first", {.start_us = 0, .end_us = 10})
                      .op("late", {.start_us = 5, .end_us = 15})
                      .op("inside", {.start_us = 6, .end_us = 8})
                      .build();
  EXPECT_EQ(host_times(ops(m)),
            "first 1 10/10\n"
            "late 1 8/10\n"
            "inside 1 2/2\n");
}

TEST(Ops, slices_that_touch_are_neighbours) {
  const Model m = TraceBuilder()
                      .op("a", {.start_us = 0, .end_us = 10})
                      .op("b", {.start_us = 10, .end_us = 20})
                      .op("c", {.start_us = 20, .end_us = 20})
                      .build();
  const OpsResult result = ops(m);
  EXPECT_TRUE(row_of(result, "b").is_top_level);
  EXPECT_TRUE(row_of(result, "c").is_top_level);
  EXPECT_EQ(row_of(result, "a").self_cpu_time_total_ns, 10'000);
}

TEST(Ops, of_two_slices_that_start_together_the_longer_is_the_parent) {
  const Model m =
      TraceBuilder().op("short", {.start_us = 10, .end_us = 12}).op("long", {.start_us = 10, .end_us = 20}).build();
  EXPECT_EQ(host_times(ops(m)),
            "long 1 8/10\n"
            "short 1 2/2\n");
}

TEST(Ops, threads_do_not_nest_in_each_other) {
  const Model m = TraceBuilder()
                      .op("main", {.start_us = 0, .end_us = 100, .thread = 1})
                      .op("worker", {.start_us = 10, .end_us = 20, .thread = 2})
                      .build();
  EXPECT_EQ(host_times(ops(m)),
            "main 1 100/100\n"
            "worker 1 10/10\n");
}

TEST(Ops, an_only_child_of_the_same_name_melts_into_its_parent) {
  const Model m = TraceBuilder()
                      .op("aten::to", {.start_us = 0, .end_us = 100})
                      .op("aten::to", {.start_us = 10, .end_us = 90})
                      .op("aten::to", {.start_us = 20, .end_us = 80})
                      .op("aten::copy_", {.start_us = 30, .end_us = 50})
                      .build();
  EXPECT_EQ(host_times(ops(m)),
            "aten::to 1 80/100\n"
            "aten::copy_ 1 20/20\n");
}

TEST(Ops, a_child_of_the_same_name_with_a_sibling_stays) {
  const Model m = TraceBuilder()
                      .op("f", {.start_us = 0, .end_us = 100})
                      .op("f", {.start_us = 10, .end_us = 40})
                      .op("g", {.start_us = 50, .end_us = 60})
                      .build();
  EXPECT_EQ(host_times(ops(m)),
            "f 2 90/130\n"  // (100 - 30 - 10) + 30
            "g 1 10/10\n");
}

TEST(Ops, a_runtime_call_is_a_sibling_that_keeps_the_same_name_apart) {
  const Model m = TraceBuilder()
                      .op("f", {.start_us = 0, .end_us = 100})
                      .call("cudaLaunchKernel", {.start_us = 5, .end_us = 8})
                      .op("f", {.start_us = 10, .end_us = 40})
                      .build();
  EXPECT_EQ(row_of(ops(m), "f").count, 2);
}

TEST(Ops, runtime_calls_nest_below_their_op) {
  const Model m = TraceBuilder()
                      .op("aten::mm", {.start_us = 0, .end_us = 20, .external_id = 1})
                      .call("cudaLaunchKernel", {.start_us = 5, .end_us = 9, .correlation = 7, .external_id = 1})
                      .build();
  EXPECT_EQ(host_times(ops(m)),
            "aten::mm 1 16/20\n"
            "cudaLaunchKernel 1 4/4\n");
}

TEST(Ops, a_call_on_a_lane_of_its_own_nests_below_the_op_that_it_names) {
  const Model m =
      TraceBuilder()
          .op("aten::mm", {.start_us = 0, .end_us = 20, .external_id = 1})
          .call("cudaLaunchKernel", {.start_us = 5, .end_us = 9, .thread = 99, .correlation = 7, .external_id = 1})
          .build();
  const OpsResult result = ops(m);
  EXPECT_EQ(row_of(result, "aten::mm").self_cpu_time_total_ns, 16'000);
  EXPECT_FALSE(row_of(result, "cudaLaunchKernel").is_top_level);
}

TEST(Ops, torchs_utility_ops_are_not_rows_and_their_time_stays_with_the_parent) {
  const Model m = TraceBuilder()
                      .op("f", {.start_us = 0, .end_us = 100})
                      .op("aten::is_leaf", {.start_us = 10, .end_us = 20})
                      .op("profiler::_record_function_exit", {.start_us = 30, .end_us = 40})
                      .build();
  EXPECT_EQ(host_times(ops(m)), "f 1 100/100\n");
}

TEST(Ops, python_slices_and_overhead_are_not_rows) {
  const Model m = TraceBuilder()
                      .python("train.py(3): step", {.start_us = 0, .end_us = 50})
                      .op("f", {.start_us = 10, .end_us = 20})
                      .overhead("Buffer Flush", {.start_us = 60, .end_us = 90})
                      .build();
  const OpsResult result = ops(m);
  EXPECT_EQ(host_times(result), "f 1 10/10\n");
  EXPECT_EQ(result.overhead_time_ns, 30'000);
}

TEST(Ops, steps_share_one_row_and_are_annotations) {
  const Model m = TraceBuilder().step(1, {.start_us = 0, .end_us = 10}).step(2, {.start_us = 10, .end_us = 30}).build();
  const OpsRow row = row_of(ops(m), "ProfilerStep*");
  EXPECT_EQ(row.count, 2);
  EXPECT_EQ(row.cpu_time_total_ns, 30'000);
  EXPECT_TRUE(row.is_user_annotation);
}

TEST(Ops, an_annotation_and_an_op_of_one_name_are_two_rows) {
  const Model m =
      TraceBuilder().op("f", {.start_us = 0, .end_us = 10}).annotation("f", {.start_us = 20, .end_us = 30}).build();
  EXPECT_EQ(ops(m).rows.size(), 2u);
}

TEST(Ops, device_time_goes_to_the_op_that_the_kernel_names_and_up_to_its_parents) {
  const Model m = TraceBuilder()
                      .annotation("step", {.start_us = 0, .end_us = 100, .external_id = 1})
                      .op("aten::linear", {.start_us = 10, .end_us = 90, .external_id = 2})
                      .op("aten::addmm", {.start_us = 20, .end_us = 80, .external_id = 3})
                      .call("cudaLaunchKernel", {.start_us = 30, .end_us = 40, .correlation = 5, .external_id = 3})
                      .call("cudaMemcpyAsync", {.start_us = 82, .end_us = 85, .correlation = 6, .external_id = 2})
                      .kernel("gemm", {.start_us = 50, .end_us = 75, .correlation = 5, .external_id = 3})
                      .copy("Memcpy DtoD", {.start_us = 90, .end_us = 95, .correlation = 6, .external_id = 2})
                      .build();
  const OpsResult result = ops(m);
  EXPECT_EQ(row_of(result, "aten::addmm").self_device_time_total_ns, 25'000);
  EXPECT_EQ(row_of(result, "aten::addmm").device_time_total_ns, 25'000);
  EXPECT_EQ(row_of(result, "aten::linear").self_device_time_total_ns, 5'000);
  EXPECT_EQ(row_of(result, "aten::linear").device_time_total_ns, 30'000);
  EXPECT_EQ(row_of(result, "step").self_device_time_total_ns, 0);
  EXPECT_EQ(row_of(result, "step").device_time_total_ns, 30'000);
  EXPECT_EQ(row_of(result, "cudaLaunchKernel").device_time_total_ns, 0);
  const OpsRow kernel = row_of(result, "gemm", /*on_device=*/true);
  EXPECT_EQ(kernel.self_device_time_total_ns, 25'000);
  EXPECT_EQ(kernel.cpu_time_total_ns, 0);
  EXPECT_EQ(result.self_device_time_total_ns, 30'000);
  EXPECT_EQ(result.unattributed_device_time_ns, 0);
  EXPECT_EQ(result.device_name, "cuda");
}

TEST(Ops, kernels_of_a_melted_child_belong_to_its_parent) {
  const Model m = TraceBuilder()
                      .op("f", {.start_us = 0, .end_us = 100, .external_id = 1})
                      .op("f", {.start_us = 10, .end_us = 90, .external_id = 2})
                      .call("cudaLaunchKernel", {.start_us = 20, .end_us = 30, .correlation = 5, .external_id = 2})
                      .kernel("k", {.start_us = 30, .end_us = 37, .correlation = 5, .external_id = 2})
                      .build();
  const OpsRow row = row_of(ops(m), "f");
  EXPECT_EQ(row.count, 1);
  EXPECT_EQ(row.self_device_time_total_ns, 7'000);
  EXPECT_EQ(row.self_cpu_time_total_ns, 90'000);
}

TEST(Ops, a_kernel_that_names_no_op_is_counted_once_and_named_unattributed) {
  const Model m = TraceBuilder()
                      .annotation("step", {.start_us = 0, .end_us = 100, .external_id = 1})
                      .call("cudaGraphLaunch", {.start_us = 10, .end_us = 20, .correlation = 5, .external_id = 1})
                      .kernel("k", {.start_us = 30, .end_us = 50, .correlation = 5})
                      .build();
  const OpsResult result = ops(m);
  EXPECT_EQ(row_of(result, "step").device_time_total_ns, 0);
  EXPECT_EQ(result.self_device_time_total_ns, 20'000);
  EXPECT_EQ(result.unattributed_device_time_ns, 20'000);
}

// As our recorder writes it: h200_train.lane once had all of its device time in no op.
TEST(Ops, where_only_ops_have_ids_device_time_goes_to_the_op_open_at_the_launch) {
  const Model m = TraceBuilder()
                      .op("aten::mm", {.start_us = 0, .end_us = 100, .external_id = 1})
                      .call("cudaLaunchKernel", {.start_us = 10, .end_us = 20, .correlation = 5})
                      .kernel("k", {.start_us = 30, .end_us = 50, .correlation = 5})
                      .build();
  const OpsResult result = ops(m);
  EXPECT_EQ(row_of(result, "aten::mm").self_device_time_total_ns, 20'000);
  EXPECT_EQ(result.unattributed_device_time_ns, 0);
}

TEST(Ops, without_ids_a_kernel_belongs_to_the_op_around_its_launch) {
  const Model m = TraceBuilder()
                      .op("aten::mm", {.start_us = 0, .end_us = 100})
                      .call("cudaLaunchKernel", {.start_us = 10, .end_us = 20, .correlation = 5})
                      .kernel("k", {.start_us = 30, .end_us = 50, .correlation = 5})
                      .build();
  EXPECT_EQ(row_of(ops(m), "aten::mm").self_device_time_total_ns, 20'000);
}

TEST(Ops, device_annotations_are_rows_outside_of_the_total) {
  const Model m = TraceBuilder()
                      .annotation("fwd", {.start_us = 0, .end_us = 50, .external_id = 1})
                      .kernel("k", {.start_us = 10, .end_us = 20})
                      .device_annotation("fwd", {.start_us = 10, .end_us = 40, .external_id = 1})
                      .build();
  const OpsResult result = ops(m);
  const OpsRow row = row_of(result, "fwd", /*on_device=*/true);
  EXPECT_TRUE(row.is_user_annotation);
  EXPECT_EQ(row.self_device_time_total_ns, 30'000);
  EXPECT_EQ(row_of(result, "fwd").device_time_total_ns, 0);
  EXPECT_EQ(result.self_device_time_total_ns, 10'000);
}

TEST(Ops, the_nanosecond_that_kineto_adds_on_both_sides_of_a_device_annotation_is_taken_off) {
  Model m = TraceBuilder()
                .kernel("k", {.start_us = 10.001, .end_us = 20.001})
                .device_annotation("fwd", {.start_us = 10, .end_us = 20.002})
                .build();
  m.info.base_time_ns = 1'790'857'026'000'000'000;  // written by a Kineto that counts in ns
  EXPECT_EQ(row_of(ops(m), "fwd", true).self_device_time_total_ns, 10'000);
}

TEST(Ops, memory_counts_for_every_open_slice_on_any_thread_and_self_is_less_the_children) {
  const Model m = TraceBuilder()
                      .op("outer", {.start_us = 0, .end_us = 100, .thread = 1})
                      .op("inner", {.start_us = 20, .end_us = 40, .thread = 1})
                      .op("other", {.start_us = 30, .end_us = 60, .thread = 2})
                      .memory({.at_us = 20, .bytes = 1000})                  // at the very start of inner
                      .memory({.at_us = 40, .bytes = -300})                  // at its very end; other is open too
                      .memory({.at_us = 50, .bytes = 64, .device_type = 1})  // on the device
                      .memory({.at_us = 70, .bytes = 5, .device_type = 14})  // meta: neither
                      .memory({.at_us = 200, .bytes = 7})                    // nobody's
                      .build();
  const OpsResult result = ops(m);
  const OpsRow outer = row_of(result, "outer");
  EXPECT_EQ(outer.cpu_memory_usage_bytes, 700);
  EXPECT_EQ(outer.self_cpu_memory_usage_bytes, 0);
  EXPECT_EQ(outer.device_memory_usage_bytes, 64);
  EXPECT_EQ(outer.self_device_memory_usage_bytes, 64);
  EXPECT_EQ(row_of(result, "inner").self_cpu_memory_usage_bytes, 700);
  EXPECT_EQ(row_of(result, "other").cpu_memory_usage_bytes, -300);
  EXPECT_EQ(row_of(result, "other").device_memory_usage_bytes, 64);
  const OpsRow rest = row_of(result, "[memory]");
  EXPECT_EQ(rest.count, 1);
  EXPECT_EQ(rest.self_cpu_memory_usage_bytes, 7);
  EXPECT_EQ(rest.cpu_time_total_ns, 0);
  EXPECT_TRUE(result.has_memory);
}

TEST(Ops, memory_before_all_slices_and_between_them_is_unclaimed) {
  const Model m = TraceBuilder()
                      .memory({.at_us = 1, .bytes = 1})
                      .op("a", {.start_us = 10, .end_us = 20})
                      .memory({.at_us = 15, .bytes = 2})
                      .memory({.at_us = 25, .bytes = 4})
                      .op("b", {.start_us = 30, .end_us = 40})
                      .memory({.at_us = 35, .bytes = 8})
                      .build();
  const OpsResult result = ops(m);
  EXPECT_EQ(row_of(result, "[memory]").cpu_memory_usage_bytes, 5);
  EXPECT_EQ(row_of(result, "[memory]").count, 2);
  EXPECT_EQ(row_of(result, "a").cpu_memory_usage_bytes, 2);
  EXPECT_EQ(row_of(result, "b").cpu_memory_usage_bytes, 8);
}

TEST(Ops, a_failed_allocation_is_a_row_and_takes_nothing_from_the_op_around_it) {
  Model m = TraceBuilder()
                .op("aten::empty", {.start_us = 0, .end_us = 10})
                .memory({.at_us = 5, .bytes = 4096, .device_type = 1, .device = 0})
                .build();
  m.memory_events.kind[0] = MemoryKind::kOutOfMemory;
  const OpsResult result = ops(m);
  EXPECT_EQ(row_of(result, "[OutOfMemory]").device_memory_usage_bytes, 4096);
  EXPECT_EQ(row_of(result, "aten::empty").device_memory_usage_bytes, 0);
  EXPECT_EQ(row_of(result, "aten::empty").self_device_memory_usage_bytes, 0);
}

TEST(Ops, asynchronous_slices_have_only_a_total) {
  Model m = TraceBuilder()
                .op("send", {.start_us = 0, .end_us = 100, .thread = 3, .external_id = 1})
                .op("send", {.start_us = 50, .end_us = 120, .thread = 3, .external_id = 2})
                .build();
  m.lanes.kind[static_cast<uint32_t>(m.host_slices.lane[0])] = LaneKind::kAsync;
  const OpsRow row = row_of(ops(m), "send");
  EXPECT_TRUE(row.is_async);
  EXPECT_EQ(row.count, 2);
  EXPECT_EQ(row.cpu_time_total_ns, 170'000);
  EXPECT_EQ(row.self_cpu_time_total_ns, 0);
}

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

TEST(Ops, an_empty_trace_has_no_rows) {
  const OpsResult result = ops(TraceBuilder().build());
  EXPECT_TRUE(result.rows.empty());
  EXPECT_EQ(result.device_name, "");
}

}  // namespace
}  // namespace firelane
