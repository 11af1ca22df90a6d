#include "analyze/trace/range.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

TEST(RangeSums, slices_are_clipped_and_nested_time_is_taken_out_of_self) {
  const Model model = TraceBuilder()
                          .op("outer", {.start_us = 0, .end_us = 100})
                          .op("inner", {.start_us = 10, .end_us = 30})
                          .op("inner", {.start_us = 60, .end_us = 90})
                          .kernel("gemm", {.start_us = 20, .end_us = 50})
                          .build();
  const RangeSums sums = range_sums(model, {20'000, 70'000});
  ASSERT_EQ(sums.names.size(), 3u);
  EXPECT_EQ(model.text(sums.names[0].name), "outer");
  EXPECT_EQ(sums.names[0].total_ns, 50'000);
  EXPECT_EQ(sums.names[0].self_ns, 30'000);
  EXPECT_EQ(model.text(sums.names[1].name), "gemm");
  EXPECT_EQ(sums.names[1].total_ns, 30'000);
  EXPECT_EQ(model.text(sums.names[2].name), "inner");
  EXPECT_EQ(sums.names[2].count, 2);
  EXPECT_EQ(sums.names[2].total_ns, 20'000);
  ASSERT_EQ(sums.kinds.size(), 2u);
  EXPECT_EQ(sums.kinds[0].total_ns, 70'000);
  EXPECT_EQ(sums.kinds[0].self_ns, 50'000);
  ASSERT_EQ(sums.lanes.size(), 2u);
  EXPECT_EQ(sums.lanes[0].busy_ns, 50'000);
  EXPECT_EQ(sums.lanes[1].busy_ns, 30'000);
}

TEST(RangeSums, only_the_lanes_asked_for_count) {
  const Model model = TraceBuilder()
                          .op("here", {.start_us = 0, .end_us = 10})
                          .op("there", {.start_us = 0, .end_us = 10, .thread = 2})
                          .build();
  const RangeSums sums = range_sums(model, {0, 10'000}, std::vector<LaneId>{LaneId{1}});
  ASSERT_EQ(sums.names.size(), 1u);
  EXPECT_EQ(model.text(sums.names[0].name), "there");
}

TEST(RangeSums, self_times_of_a_thread_add_up_to_its_busy_time) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Model model = random_trace(seed);
    for (const Interval range : {Interval{0, 1'000'000'000}, Interval{30'000, 90'000}}) {
      for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
        if (model.lanes.kind[lane] != LaneKind::kThread) continue;
        const RangeSums sums = range_sums(model, range, std::vector<LaneId>{static_cast<LaneId>(lane)});
        int64_t self = 0;
        for (const RangeName& name : sums.names) self += name.self_ns;
        EXPECT_EQ(self, sums.lanes.empty() ? 0 : sums.lanes[0].busy_ns) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace firelane::analyze
