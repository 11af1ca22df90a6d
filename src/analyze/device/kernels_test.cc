// Kernel tables by hand: two gemms for two ops, a copy and a set.
#include "analyze/device/kernels.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

Model small_trace() {
  return TraceBuilder()
      .op("aten::mm", {.start_us = 0, .end_us = 20, .external_id = 1})
      .call("cudaLaunchKernel", {.start_us = 5, .end_us = 9, .correlation = 7, .external_id = 1})
      .op("aten::addmm", {.start_us = 20, .end_us = 40, .external_id = 2})
      .call("cudaLaunchKernel", {.start_us = 25, .end_us = 29, .correlation = 8, .external_id = 2})
      .kernel("gemm", {.start_us = 10,
                       .end_us = 40,
                       .correlation = 7,
                       .external_id = 1,
                       .grid = 132,
                       .block = 128,
                       .registers = 64,
                       .occupancy_percent = 50})
      .kernel("gemm", {.start_us = 40,
                       .end_us = 50,
                       .correlation = 8,
                       .external_id = 2,
                       .grid = 66,
                       .block = 128,
                       .registers = 80,
                       .occupancy_percent = 10})
      .copy("Memcpy HtoD", {.start_us = 45, .end_us = 85, .stream = 9, .bytes = 80'000})
      .set("Memset", {.start_us = 90, .end_us = 110})
      .device_annotation("forward", {.start_us = 10, .end_us = 50})
      .build();
}

const KernelRow& row_named(const Model& model, const KernelTable& table, std::string_view name) {
  for (const KernelRow& row : table.rows) {
    if (model.text(row.name) == name) return row;
  }
  ADD_FAILURE() << "no row named " << name;
  return table.rows.at(0);
}

TEST(KernelTable, rows_add_up_to_all_device_work) {
  const Model model = small_trace();
  const KernelTable table = kernel_table(model);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.work_ns, 100'000);
  EXPECT_EQ(table.busy_ns, 95'000);  // 10..85 and 90..110: 5 us of copy ran beside the second gemm
  EXPECT_EQ(table.calls, 4);
  EXPECT_EQ(table.without_op, 2);
  double shares = 0;
  for (const KernelRow& row : table.rows) shares += row.share_percent;
  EXPECT_DOUBLE_EQ(shares, 100.0);
}

TEST(KernelTable, calls_of_one_name_are_one_row) {
  const Model model = small_trace();
  const KernelTable table = kernel_table(model);
  const KernelRow& gemm = row_named(model, table, "gemm");
  EXPECT_EQ(gemm.calls, 2);
  EXPECT_EQ(gemm.total_ns, 40'000);
  EXPECT_EQ(gemm.min_ns, 10'000);
  EXPECT_EQ(gemm.max_ns, 30'000);
  EXPECT_DOUBLE_EQ(gemm.mean_ns(), 20'000);
  EXPECT_DOUBLE_EQ(gemm.share_percent, 40.0);
  EXPECT_EQ(gemm.registers, 80);
}

TEST(KernelTable, launch_shape_is_given_only_when_all_calls_share_it) {
  const Model model = small_trace();
  const KernelTable table = kernel_table(model);
  const KernelRow& gemm = row_named(model, table, "gemm");
  EXPECT_TRUE(gemm.grid.state == decltype(gemm.grid)::State::kVaries);
  ASSERT_TRUE(gemm.block.state == decltype(gemm.block)::State::kSame);
  EXPECT_EQ(gemm.block.value, (std::array<int32_t, 3>{128, 1, 1}));
}

TEST(KernelTable, occupancy_is_weighted_by_time) {
  const Model model = small_trace();
  // (50% * 30 us + 10% * 10 us) / 40 us
  EXPECT_DOUBLE_EQ(row_named(model, kernel_table(model), "gemm").occupancy_percent, 40.0);
}

TEST(KernelTable, an_occupancy_of_zero_that_the_warps_rule_out_is_not_known) {
  // 19% and 0.4% of 64
  const Model model = TraceBuilder()
                          .kernel("gemm", {.start_us = 0, .end_us = 10, .occupancy_percent = 0, .warps_per_sm = 12.0f})
                          .kernel("gemm", {.start_us = 10, .end_us = 20, .occupancy_percent = 0, .warps_per_sm = 0.25f})
                          .build();
  const KernelTable table = kernel_table(model);
  EXPECT_EQ(table.without_occupancy, 1);
  EXPECT_DOUBLE_EQ(table.rows.at(0).occupancy_percent, 0.0);  // of the second call
}

TEST(KernelTable, an_occupancy_that_the_trace_lacks_is_computed_and_what_bounds_most_of_the_time_is_named) {
  const Model model = TraceBuilder()
                          .device({.id = 0,
                                   .compute_major = 9,
                                   .compute_minor = 0,
                                   .multiprocessors = 132,
                                   .max_threads_per_multiprocessor = 2048,
                                   .registers_per_multiprocessor = 65536,
                                   .shared_memory_per_multiprocessor_bytes = 228 * 1024,
                                   .warp_size = 32})
                          .kernel("gemm", {.start_us = 0,
                                           .end_us = 30,
                                           .grid = 13200,
                                           .block = 256,
                                           .registers = 32,
                                           .shared_memory_bytes = 100 * 1024})  // two blocks: 25%
                          .kernel("gemm", {.start_us = 30,
                                           .end_us = 40,
                                           .grid = 132,
                                           .block = 256,
                                           .registers = 32,
                                           .shared_memory_bytes = 100 * 1024})  // one block: 12.5%
                          .build();
  const KernelTable table = kernel_table(model);
  EXPECT_EQ(table.without_occupancy, 0);
  EXPECT_DOUBLE_EQ(table.rows.at(0).occupancy_percent, (25.0 * 30 + 12.5 * 10) / 40);
  EXPECT_EQ(table.rows.at(0).occupancy_limit, OccupancyLimit::kSharedMemory);
}

TEST(KernelTable, copies_have_bytes_and_bandwidth) {
  const Model model = small_trace();
  const KernelTable table = kernel_table(model);
  const KernelRow& copy = row_named(model, table, "Memcpy HtoD");
  EXPECT_EQ(copy.kind, DeviceKind::kCopy);
  EXPECT_EQ(copy.bytes, 80'000);
  EXPECT_DOUBLE_EQ(copy.bandwidth_gb_s, 2.0);  // 80 kB in 40 us
  EXPECT_EQ(row_named(model, table, "Memset").bytes, kNoNumber);
}

TEST(KernelTable, launching_ops_are_listed_longest_first) {
  const Model model = small_trace();
  const KernelTable table = kernel_table(model);
  const KernelRow& gemm = row_named(model, table, "gemm");
  ASSERT_EQ(gemm.ops.size(), 2u);
  EXPECT_EQ(model.text(gemm.ops[0].op), "aten::mm");
  EXPECT_EQ(gemm.ops[0].total_ns, 30'000);
  EXPECT_EQ(model.text(gemm.ops[1].op), "aten::addmm");
}

TEST(KernelTable, grouping_by_op_splits_a_kernel_and_still_adds_up) {
  const Model model = small_trace();
  const KernelTable table = kernel_table(model, {.by_op = true});
  ASSERT_EQ(table.rows.size(), 4u);
  int64_t total = 0;
  for (const KernelRow& row : table.rows) total += row.total_ns;
  EXPECT_EQ(total, 100'000);
}

TEST(KernelTable, by_stream_names_device_and_stream) {
  const Model model = small_trace();
  const KernelTable table = kernel_table(model, {.by_stream = true});
  const KernelRow& copy = row_named(model, table, "Memcpy HtoD");
  EXPECT_EQ(copy.device, 0);
  EXPECT_EQ(copy.stream, 9);
}

TEST(KernelTable, sorts_by_what_is_asked) {
  const Model model = small_trace();
  KernelTable table = kernel_table(model);
  sort_rows(model, table, KernelOrder::kCalls);
  EXPECT_EQ(model.text(table.rows[0].name), "gemm");
  sort_rows(model, table, KernelOrder::kMax);
  EXPECT_EQ(model.text(table.rows[0].name), "Memcpy HtoD");
  sort_rows(model, table, KernelOrder::kName);
  EXPECT_EQ(model.text(table.rows[0].name), "Memcpy HtoD");
  EXPECT_EQ(model.text(table.rows[2].name), "gemm");
}

TEST(KernelTable, a_trace_without_device_work_gives_an_empty_table) {
  const KernelTable table = kernel_table(TraceBuilder().op("aten::mm", {.start_us = 0, .end_us = 1}).build());
  EXPECT_TRUE(table.rows.empty());
  EXPECT_EQ(table.work_ns, 0);
}

}  // namespace
}  // namespace firelane::analyze
