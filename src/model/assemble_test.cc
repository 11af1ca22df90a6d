#include "model/raw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/trace_builder.h"

namespace firelane {
namespace {

// "aten::mm < step" for each host slice: its name and its parent's.
std::string nesting(const Model& m) {
  std::string out;
  for (Row row = 0; row < m.host_slices.size(); ++row) {
    const Row parent = m.host_slices.parent[row];
    out += std::string(m.text(m.host_slices.name[row])) + "<" +
           (parent == kNoRow ? "-" : std::string(m.text(m.host_slices.name[parent]))) + " ";
  }
  return out;
}

TEST(Assemble, slices_are_sorted_by_lane_start_and_longest_first) {
  const Model m = TraceBuilder()
                      .op("b", {.start_us = 10, .end_us = 12, .thread = 2})
                      .op("inner", {.start_us = 5, .end_us = 7})
                      .op("outer", {.start_us = 5, .end_us = 20})
                      .op("a", {.start_us = 1, .end_us = 2})
                      .build();
  EXPECT_EQ(nesting(m), "a<- outer<- inner<outer b<- ");
  EXPECT_EQ(m.host_slices.start_ns, (std::vector<int64_t>{0, 4000, 4000, 9000}));
  EXPECT_EQ(m.info.start_ns, 1000);
  EXPECT_EQ(m.info.duration_ns, 19000);
}

// Rows are freed in pieces while they become a table: none may be read after that, and none twice. Three parts whose
// ops take turns on two lanes, one of them backwards, and one of plain ops.
TEST(Assemble, rows_of_many_parts_and_pieces_all_arrive_at_their_place) {
  constexpr int64_t kRows = 70'000;  // of a part
  constexpr int64_t kParts = 3;
  RawTrace raw;
  RawPool& pool = raw.pools.emplace_back();
  const LaneId lanes[] = {pool.lane({.number = 1}, {.number = 1}), pool.lane({.number = 1}, {.number = 2})};
  for (int64_t p = 0; p < kParts; ++p) {
    RawPart& part = raw.parts.emplace_back();
    for (int64_t i = 0; i < kRows; ++i) {
      const int64_t at = (p == 1 ? kRows - 1 - i : i) * kParts + p;
      if (p == 2) {
        part.plain_ops.push_back({.external_id = at});
      } else {
        part.op_details.push_back({.external_id = at});
      }
      part.host_slices.push_back({.start_ns = at,
                                  .duration_ns = 1,
                                  .lane = lanes[at % 2],
                                  .name = pool.strings.intern(std::to_string(at % 7)),
                                  .kind = HostKind::kOp,
                                  .detail = static_cast<Row>(i)});
      part.device_slices.push_back({.start_ns = at,
                                    .duration_ns = 1,
                                    .lane = pool.lane({.number = 0}, {.number = at % 2}),
                                    .name = pool.strings.intern(std::to_string(at % 5)),
                                    .kind = DeviceKind::kOther});
    }
  }
  const Model m = assemble(std::move(raw), 2);
  ASSERT_EQ(m.host_slices.size(), kParts * kRows);
  ASSERT_EQ(m.device_slices.size(), kParts * kRows);
  for (Row row = 0; row < m.host_slices.size(); ++row) {
    const int64_t lane = row < m.host_slices.size() / 2 ? 0 : 1;
    const int64_t at = (row - lane * (kParts * kRows / 2)) * 2 + lane;
    ASSERT_EQ(m.host_slices.start_ns[row], at) << row;
    ASSERT_EQ(m.text(m.host_slices.name[row]), std::to_string(at % 7)) << row;
    ASSERT_EQ(m.op_details.external_id[m.host_slices.detail[row]], at) << row;
    ASSERT_EQ(m.op_details.slice[m.host_slices.detail[row]], row) << row;
    ASSERT_EQ(m.device_slices.start_ns[row], at) << row;
    ASSERT_EQ(m.text(m.device_slices.name[row]), std::to_string(at % 5)) << row;
  }
}

TEST(Assemble, a_slice_that_outlives_the_open_one_closes_it_and_both_are_kept) {
  const Model m = TraceBuilder()
                      .op("first", {.start_us = 0, .end_us = 10})
                      .op("second", {.start_us = 5, .end_us = 15})
                      .op("third", {.start_us = 6, .end_us = 8})
                      .build();
  EXPECT_EQ(nesting(m), "first<- second<- third<second ");
  EXPECT_EQ(m.losses[Stat::kOverlappingHostSlices], 1u);
}

TEST(Assemble, kernels_find_their_launch_by_correlation_and_their_op_by_external_id) {
  const Model m = TraceBuilder()
                      .op("aten::mm", {.start_us = 0, .end_us = 20, .external_id = 5})
                      .op("aten::other", {.start_us = 30, .end_us = 40, .external_id = 6})
                      .call("cudaLaunchKernel", {.start_us = 32, .end_us = 35, .correlation = 9, .external_id = 5})
                      .kernel("gemm", {.start_us = 50, .end_us = 60, .correlation = 9, .external_id = 5})
                      .build();
  ASSERT_EQ(m.device_slices.size(), 1u);
  EXPECT_EQ(m.text(m.host_slices.name[m.device_slices.launch[0]]), "cudaLaunchKernel");
  EXPECT_EQ(m.text(m.host_slices.name[m.device_slices.op[0]]), "aten::mm");
  EXPECT_EQ(m.losses[Stat::kDeviceSliceWithoutLaunch], 0u);
}

TEST(Assemble, without_external_ids_a_launch_belongs_to_the_innermost_op_around_it) {
  const Model m = TraceBuilder()
                      .op("aten::linear", {.start_us = 0, .end_us = 20})
                      .op("aten::mm", {.start_us = 2, .end_us = 18})
                      .python("f.py(1): f", {.start_us = 3, .end_us = 17})
                      .call("cudaLaunchKernel", {.start_us = 5, .end_us = 9, .correlation = 9})
                      .kernel("gemm", {.start_us = 50, .end_us = 60, .correlation = 9})
                      .build();
  EXPECT_EQ(m.text(m.host_slices.name[m.device_slices.op[0]]), "aten::mm");
}

TEST(Assemble, work_without_a_partner_is_counted_not_dropped) {
  const Model m = TraceBuilder()
                      .call("cudaLaunchKernel", {.start_us = 0, .end_us = 1, .correlation = 1})
                      .call("cudaGetDevice", {.start_us = 2, .end_us = 3, .correlation = 2})
                      .kernel("orphan", {.start_us = 5, .end_us = 6, .correlation = 77})
                      .build();
  EXPECT_EQ(m.device_slices.size(), 1u);
  EXPECT_EQ(m.losses[Stat::kDeviceSliceWithoutLaunch], 1u);
  EXPECT_EQ(m.losses[Stat::kDeviceSliceWithoutOp], 1u);
  EXPECT_EQ(m.losses[Stat::kLaunchWithoutDeviceSlice], 1u);
}

TEST(Assemble, a_kernel_before_its_launch_is_counted_as_a_clock_that_disagrees) {
  const Model m = TraceBuilder()
                      .call("cudaLaunchKernel", {.start_us = 10, .end_us = 11, .correlation = 1})
                      .kernel("early", {.start_us = 9, .end_us = 12, .correlation = 1})
                      .build();
  EXPECT_EQ(m.losses[Stat::kKernelBeforeLaunch], 1u);
}

TEST(Assemble, many_kernels_of_one_graph_launch_share_it_and_overlaps_on_a_stream_stay) {
  const Model m = TraceBuilder()
                      .call("cudaGraphLaunch", {.start_us = 0, .end_us = 1, .correlation = 1})
                      .kernel("k1", {.start_us = 5, .end_us = 9, .correlation = 1, .graph_id = 3})
                      .kernel("k2", {.start_us = 8, .end_us = 12, .correlation = 1, .graph_id = 3})
                      .build();
  EXPECT_EQ(m.device_slices.launch, (std::vector<Row>{0, 0}));
  EXPECT_EQ(m.losses[Stat::kOverlappingDeviceSlices], 1u);
  EXPECT_EQ(m.losses[Stat::kDeviceSliceWithoutLaunch], 0u);
}

TEST(Assemble, forward_and_backward_ops_are_joined_by_their_arrow) {
  const Model m = TraceBuilder()
                      .op("aten::mm", {.start_us = 0, .end_us = 10, .thread = 1})
                      .op("MmBackward0", {.start_us = 20, .end_us = 30, .thread = 2})
                      .flow("fwdbwd", 1, {.start_us = 0, .thread = 1}, {.start_us = 20, .thread = 2})
                      .build();
  EXPECT_EQ(m.op_details.forward[m.op_detail(1)], 0u);
  EXPECT_EQ(m.flows.size(), 0u);
}

TEST(Assemble, other_arrows_are_kept_and_arrows_to_nothing_are_counted) {
  const Model m = TraceBuilder()
                      .op("a", {.start_us = 0, .end_us = 10})
                      .op("b", {.start_us = 20, .end_us = 30})
                      .flow("custom", 1, {.start_us = 5}, {.start_us = 25})
                      .flow("custom", 2, {.start_us = 15}, {.start_us = 25})
                      .build();
  ASSERT_EQ(m.flows.size(), 1u);
  EXPECT_EQ(m.flows.from[0], (SliceRef{.row = 0}));
  EXPECT_EQ(m.flows.to[0], (SliceRef{.row = 1}));
  EXPECT_EQ(m.losses[Stat::kFlowWithoutSlice], 1u);
}

TEST(Assemble, sizes_that_would_overflow_a_sum_are_absent_and_counted) {
  TraceBuilder builder;
  builder.copy("Memcpy HtoD (Pinned -> Device)", {.start_us = 0, .end_us = 1, .bytes = 4096});
  for (int i = 1; i <= 3; ++i) {
    builder.copy("Memcpy HtoD (Pinned -> Device)", {.start_us = i * 2.0, .end_us = i * 2.0 + 1, .bytes = INT64_MAX});
    builder.memory({.at_us = double(i), .bytes = INT64_MIN + i, .total_allocated = INT64_MAX});
  }
  const Model m = builder.build();
  EXPECT_EQ(m.copy_details.bytes, (std::vector<int64_t>{4096, kNoNumber, kNoNumber, kNoNumber}));
  EXPECT_EQ(m.memory_events.bytes, (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(m.memory_events.total_allocated_bytes, (std::vector<int64_t>{kNoNumber, kNoNumber, kNoNumber}));
  EXPECT_EQ(m.losses[Stat::kSizeOutOfRange], 9u);
}

TEST(Assemble, a_million_levels_of_nesting_do_not_keep_analyses_busy_for_hours) {
  constexpr int kLevels = 3000;
  TraceBuilder builder;
  for (int i = 0; i < kLevels; ++i) builder.op("f", {.start_us = double(i), .end_us = 2.0 * kLevels - i});
  const Model m = builder.build();
  EXPECT_EQ(*std::max_element(m.host_slices.depth.begin(), m.host_slices.depth.end()), 1024);
  EXPECT_EQ(m.host_slices.duration_ns[1023], (2 * kLevels - 2 * 1023) * 1000);
  EXPECT_EQ(m.host_slices.duration_ns[1024], 0);
  EXPECT_EQ(m.host_slices.parent[kLevels - 1], 1023u);
  EXPECT_EQ(m.losses[Stat::kNestedTooDeep], uint64_t{kLevels - 1024});
}

TEST(Assemble, steps_are_found_by_their_annotation_in_time_order) {
  const Model m = TraceBuilder()
                      .step(3, {.start_us = 50, .end_us = 90})
                      .step(2, {.start_us = 0, .end_us = 50})
                      .annotation("ProfilerStep#x", {.start_us = 91, .end_us = 92})
                      .build();
  EXPECT_EQ(m.steps.number, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(m.steps.duration_ns, (std::vector<int64_t>{50000, 40000}));
}

TEST(Assemble, the_step_that_was_cut_off_by_the_end_of_the_recording_is_no_step) {
  const Model m = TraceBuilder()
                      .step(2, {.start_us = 0, .end_us = 50})
                      .step(3, {.start_us = 50, .end_us = 60})
                      .metadata("unfinished_step", "3")
                      .build();
  EXPECT_EQ(m.steps.number, (std::vector<int64_t>{2}));
  EXPECT_EQ(m.host_slices.size(), 2u);
}

TEST(Assemble, memory_events_instants_and_counters_are_sorted_by_time) {
  const Model m = TraceBuilder()
                      .memory({.at_us = 9, .bytes = -64})
                      .memory({.at_us = 3, .bytes = 64})
                      .counter("power", 5, 300)
                      .counter("power", 4, 200)
                      .instant("mark", 1)
                      .build();
  EXPECT_EQ(m.memory_events.bytes, (std::vector<int64_t>{64, -64}));
  EXPECT_EQ(m.counter_samples.value, (std::vector<double>{200, 300}));
  EXPECT_EQ(m.counter_tracks.size(), 1u);
  EXPECT_EQ(m.info.start_ns, 1000);
}

TEST(Assemble, slices_of_decades_that_would_overflow_a_sum_count_as_out_of_range) {
  const auto build = [](double us) {
    TraceBuilder builder;
    for (int i = 0; i < 8; ++i) builder.op("a", {.start_us = 1.0 * i, .end_us = us, .thread = i});
    return builder.build();
  };
  const Model month = build(2.6e12);
  EXPECT_EQ(month.losses[Stat::kDurationOutOfRange], 0u);
  EXPECT_EQ(month.info.duration_ns, 2'600'000'000'000'000);
  const Model century = build(3e15);
  EXPECT_EQ(century.losses[Stat::kDurationOutOfRange], 8u);
  EXPECT_EQ(century.info.duration_ns, 7'000);  // from the first start to the last
}

TEST(Assemble, an_empty_trace_is_a_model_without_rows) {
  const Model m = TraceBuilder().build();
  EXPECT_EQ(m.host_slices.size(), 0u);
  EXPECT_EQ(m.info.duration_ns, 0);
}

TEST(Assemble, details_point_back_at_their_slices) {
  const Model m = TraceBuilder()
                      .op("late", {.start_us = 9, .end_us = 10, .external_id = 1})
                      .op("early", {.start_us = 0, .end_us = 1, .external_id = 2})
                      .kernel("k", {.start_us = 1, .end_us = 2})
                      .copy("Memcpy HtoD", {.start_us = 0, .end_us = 1, .bytes = 4096})
                      .build();
  for (Row detail = 0; detail < m.op_details.size(); ++detail) {
    EXPECT_EQ(m.host_slices.detail[m.op_details.slice[detail]], detail);
  }
  EXPECT_EQ(m.op_details.external_id, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(m.text(m.device_slices.name[m.copy_details.slice[0]]), "Memcpy HtoD");
  EXPECT_EQ(m.text(m.device_slices.name[m.kernel_details.slice[0]]), "k");
}

}  // namespace
}  // namespace firelane
