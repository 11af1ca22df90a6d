// Device time, memory and asynchronous slices in the ops table, on traces small enough to add up by hand.
#include "analyze/ops/ops.h"

#include <gtest/gtest.h>

#include <string>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

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
  m.memory_events.kind[0] = MemoryEventKind::kOutOfMemory;
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

}  // namespace
}  // namespace firelane::analyze
