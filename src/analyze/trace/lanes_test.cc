#include "analyze/trace/lanes.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

LaneRow row_of(const Model& model, const std::vector<LaneRow>& rows, LaneKind kind, int64_t tid) {
  for (const LaneRow& row : rows) {
    const auto lane = static_cast<size_t>(row.lane);
    if (model.lanes.kind[lane] == kind && model.lanes.tid[lane].number == tid) return row;
  }
  ADD_FAILURE() << "no lane " << tid;
  return {};
}

TEST(LaneTable, nested_slices_count_their_time_once) {
  const Model model = TraceBuilder()
                          .op("outer", {.start_us = 0, .end_us = 10})
                          .op("inner", {.start_us = 2, .end_us = 5})
                          .op("later", {.start_us = 20, .end_us = 25})
                          .build();
  const LaneRow row = row_of(model, lane_table(model), LaneKind::kThread, 1);
  EXPECT_EQ(row.slices, 3);
  EXPECT_EQ(row.busy_ns, 15'000);
  EXPECT_EQ(row.depth, 2);
  EXPECT_EQ(row.first_ns, 0);
  EXPECT_EQ(row.last_ns, 25'000);
}

TEST(LaneTable, annotations_on_a_stream_are_slices_but_not_busy_time) {
  const Model model = TraceBuilder()
                          .kernel("a", {.start_us = 0, .end_us = 10})
                          .kernel("b", {.start_us = 8, .end_us = 12})
                          .device_annotation("forward", {.start_us = 0, .end_us = 50})
                          .build();
  const LaneRow row = row_of(model, lane_table(model), LaneKind::kStream, 7);
  EXPECT_EQ(row.slices, 3);
  EXPECT_EQ(row.busy_ns, 12'000);
  EXPECT_EQ(row.depth, 2);  // a and b overlap
  EXPECT_EQ(row.last_ns, 50'000);
}

}  // namespace
}  // namespace firelane::analyze
