// The rules of the ops table, one by one, on traces small enough to add up by hand: nesting, names, host time.
#include "analyze/ops/ops.h"

#include <gtest/gtest.h>

#include <string>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

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

TEST(Ops, python_functions_are_rows_with_their_self_time_when_asked_for) {
  const Model m = TraceBuilder()
                      .python("f.py(1): f", {.start_us = 0, .end_us = 100})
                      .op("outer", {.start_us = 10, .end_us = 60})
                      .python("f.py(9): g", {.start_us = 20, .end_us = 50})
                      .op("inner", {.start_us = 30, .end_us = 35})
                      .build();
  EXPECT_EQ(host_times(ops(m)), "outer 1 45/50\ninner 1 5/5\n");
  const OpsResult with_python = ops(m, {.python_functions = true});
  EXPECT_EQ(host_times(with_python),
            "f.py(1): f 1 50/100\n"
            "outer 1 20/50\n"
            "f.py(9): g 1 25/30\n"
            "inner 1 5/5\n");
  EXPECT_EQ(with_python.self_cpu_time_total_ns, 100'000);
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

TEST(Ops, an_empty_trace_has_no_rows) {
  const OpsResult result = ops(TraceBuilder().build());
  EXPECT_TRUE(result.rows.empty());
  EXPECT_EQ(result.device_name, "");
}

}  // namespace
}  // namespace firelane::analyze
