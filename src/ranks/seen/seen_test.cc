#include <gtest/gtest.h>

#include "ranks/seen/heat.h"
#include "ranks/seen/window.h"
#include "ranks/testing/generate.h"

namespace firelane::ranks {
namespace {

using testing::studied;

TEST(Heat, has_a_cell_for_each_rank_and_step_and_folds_them_when_there_is_no_room) {
  const auto job = studied({.ranks = 6, .steps = 5, .straggler = 4, .cause = Cause::kSlowerKernels, .details = true});
  const Heat all = heat_map(*job, HeatValue::kMemory, {});
  EXPECT_EQ(all.ranks, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(all.steps, (std::vector<int64_t>{100, 101, 102, 103, 104}));
  EXPECT_EQ(all.cells[5 * 5], int64_t{13} << 30);
  const Heat small = heat_map(*job, HeatValue::kMemory, {.rows = 2, .columns = 2});
  EXPECT_EQ(small.ranks, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(small.steps, (std::vector<int64_t>{100, 103}));
  EXPECT_EQ(small.ranks_a_row, 3u);
  EXPECT_EQ(small.cells,
            (std::vector<int64_t>{int64_t{10} << 30, int64_t{10} << 30, int64_t{13} << 30, int64_t{13} << 30}));
  // The straggler waits the least and is late in every step.
  const Heat late = heat_map(*job, HeatValue::kLate, {.first_rank = 4, .end_rank = 5});
  for (const int64_t cell : late.cells) EXPECT_GT(cell, 500'000);
}

TEST(Window, lanes_lie_on_one_axis_and_the_last_to_arrive_does_not_wait) {
  const auto job = studied({.ranks = 16, .gpus_per_host = 4, .steps = 4, .straggler = 9, .cause = Cause::kHost});
  const AxisWindow whole = whole_axis(*job);
  const RankLane first = rank_lane(*job, 0, whole, {});
  const RankLane slow = rank_lane(*job, 9, whole, {});
  ASSERT_EQ(first.pieces.size(), slow.pieces.size());
  for (size_t i = 1; i < first.pieces.size(); ++i) {
    EXPECT_EQ(first.pieces[i].instance, slow.pieces[i].instance);
    EXPECT_NEAR(static_cast<double>(first.pieces[i].end_ns), static_cast<double>(slow.pieces[i].end_ns), 20'000);
    EXPECT_LE(slow.pieces[i].moves_ns - slow.pieces[i].start_ns, 20'000);
  }
}

TEST(Window, a_crowded_lane_becomes_bins_with_the_same_time) {
  const auto job = studied({.ranks = 4, .tensor = 4, .steps = 4});
  const AxisWindow whole = whole_axis(*job);
  const RankLane pieces = rank_lane(*job, 1, whole, {});
  const RankLane bins = rank_lane(*job, 1, whole, {.most_pieces = 3, .bins = 16});
  ASSERT_EQ(bins.bins.size(), 16u);
  EXPECT_TRUE(bins.pieces.empty());
  int64_t in_pieces = 0;
  int64_t in_bins = 0;
  for (const LanePiece& piece : pieces.pieces) in_pieces += piece.end_ns - piece.start_ns;
  for (const LaneBin& bin : bins.bins) in_bins += bin.wait_ns + bin.move_ns;
  EXPECT_EQ(in_pieces, in_bins);
}

TEST(Window, times_of_the_axis_are_found_in_the_trace_of_a_rank) {
  const auto job = studied({.ranks = 16, .gpus_per_host = 4});
  for (const uint32_t rank : {0u, 7u, 15u}) {
    for (const int64_t at : {int64_t{0}, int64_t{50'000'000}, int64_t{123'456'789}}) {
      EXPECT_NEAR(static_cast<double>(job->in_trace(rank, job->on_axis(rank, at))), static_cast<double>(at), 2);
    }
  }
}

TEST(Window, collectives_are_listed_by_what_they_cost_or_by_time) {
  const auto job = studied({.ranks = 8, .straggler = 2, .cause = Cause::kGc, .every_steps = 5});
  const AxisWindow whole = whole_axis(*job);
  const CollectiveList by_wait = collectives_in(*job, whole, -1, CollectiveOrder::kWait, 3);
  ASSERT_EQ(by_wait.shown.size(), 3u);
  EXPECT_EQ(by_wait.total, job->replay.order.size());
  EXPECT_GE(by_wait.shown[0].wait_ns, by_wait.shown[1].wait_ns);
  EXPECT_EQ(by_wait.shown[0].from_rank, 2);
  const CollectiveList by_time = collectives_in(*job, whole, -1, CollectiveOrder::kTime, 3);
  EXPECT_LE(by_time.shown[0].last_arrival_ns, by_time.shown[1].last_arrival_ns);
  EXPECT_EQ(collectives_in(*job, {whole.to_ns, whole.to_ns + 1}, -1, CollectiveOrder::kTime, 3).total, 0u);
}

TEST(Window, the_path_in_a_window_is_joined_where_it_cannot_be_seen) {
  const auto job = studied({.ranks = 8, .tensor = 2});
  const AxisWindow whole = whole_axis(*job);
  const auto all = path_in(*job, whole, 0);
  const auto joined = path_in(*job, whole, (whole.to_ns - whole.from_ns) / 20);
  EXPECT_LT(joined.size(), all.size());
  EXPECT_EQ(joined.front().start_ns, all.front().start_ns);
  EXPECT_EQ(joined.back().end_ns, all.back().end_ns);
}

TEST(Window, the_straggler_is_among_the_ranks_to_look_at) {
  const auto job = studied({.ranks = 64, .tensor = 4, .straggler = 37, .cause = Cause::kHost});
  const std::vector<uint32_t> telling = telling_ranks(*job, 6);
  EXPECT_EQ(telling.size(), 6u);
  EXPECT_NE(std::find(telling.begin(), telling.end(), 37u), telling.end());
}

}  // namespace
}  // namespace firelane::ranks
