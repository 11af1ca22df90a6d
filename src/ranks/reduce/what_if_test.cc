#include "ranks/reduce/what_if.h"

#include <gtest/gtest.h>

#include "ranks/reduce/studied_job.h"
#include "ranks/testing/generate.h"

namespace firelane::ranks {
namespace {

using testing::studied;

const WhatIf* find(const StudiedJob& job, std::string_view id) {
  for (const WhatIf& each : job.result.what_ifs) {
    if (each.id == id) return &each;
  }
  return nullptr;
}

TEST(WhatIf, twice_the_bandwidth_saves_half_of_what_moves_without_its_latency) {
  const auto job = studied({.ranks = 8, .jitter = 0, .end_spread_ns = 0});
  // A step moves three buckets of 8 MB at 100 GB/s, and one element: 8 us of latency each.
  const WhatIf* faster = find(*job, "twice-the-bandwidth");
  ASSERT_NE(faster, nullptr);
  // Of 30 buckets in 10 steps the first one only sets the clock.
  EXPECT_NEAR(static_cast<double>(faster->gain_ns), 2.9 * (8 << 20) / 100.0 / 2, 1'000);
}

TEST(WhatIf, perfect_overlap_saves_no_more_than_what_moves) {
  const auto job = studied({.ranks = 8, .jitter = 0, .end_spread_ns = 0});
  const WhatIf* overlap = find(*job, "perfect-overlap");
  ASSERT_NE(overlap, nullptr);
  EXPECT_GT(overlap->gain_ns, 200'000);
  EXPECT_LT(overlap->gain_ns, 3 * (8 << 20) / 100 + 4 * 8'000 + 5'000);
}

TEST(WhatIf, the_slow_rank_has_the_largest_slowdown_of_its_own) {
  const auto job = studied({.ranks = 8, .straggler = 5, .cause = Cause::kSlowerKernels, .extra = 0.3});
  EXPECT_GT(job->result.by_rank[5].slowdown, 1.2);
  for (size_t r = 0; r < 8; ++r) {
    if (r != 5) {
      EXPECT_LT(job->result.by_rank[r].slowdown, 1.05) << r;
    }
  }
  ASSERT_FALSE(job->result.types.empty());
  EXPECT_EQ(job->result.types[0].type, "computing");
  EXPECT_NE(find(*job, "without-straggler"), nullptr);
}

TEST(WhatIf, even_work_and_its_types_are_one_for_an_even_job) {
  const auto job = studied({.ranks = 8, .jitter = 0, .end_spread_ns = 0});
  for (const TypeSlowdown& type : job->result.types) EXPECT_NEAR(type.slowdown, 1, 0.01) << type.type;
  for (const RankResult& rank : job->result.by_rank) EXPECT_NEAR(rank.slowdown, 1, 0.01);
}

TEST(Pipeline, stages_bubbles_and_schedule_come_from_sends_and_receives) {
  const auto job = studied({.ranks = 8, .pipeline = 4, .jitter = 0, .end_spread_ns = 0});
  const Pipeline& found = job->result.pipeline;
  ASSERT_EQ(found.stages.size(), 4u);
  EXPECT_EQ(found.stages[0].ranks, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(found.stages[3].ranks, (std::vector<int64_t>{6, 7}));
  EXPECT_EQ(found.micro_batches, 1);
  EXPECT_EQ(found.schedule, "one micro-batch");
  // One micro-batch through four stages: each works for a quarter of the time.
  EXPECT_DOUBLE_EQ(found.least_percent, 75);
  EXPECT_NEAR(found.bubble_percent, 70, 6);  // work outside of the pipeline is in the step, too
  const WhatIf* split = find(*job, "split-stage");
  ASSERT_NE(split, nullptr);
  // Half of a stage that works for a quarter of the time.
  EXPECT_NEAR(split->gain_percent, 12.5, 2.5);
}

TEST(Pipeline, data_parallel_ranks_have_none) { EXPECT_TRUE(studied({.ranks = 4})->result.pipeline.stages.empty()); }

TEST(CriticalPath, adds_up_and_runs_through_the_slow_rank) {
  const auto job = studied({.ranks = 8, .tensor = 2, .straggler = 3, .cause = Cause::kSlowerKernels, .details = true});
  ASSERT_FALSE(job->path.empty());
  for (size_t i = 1; i < job->path.size(); ++i) EXPECT_EQ(job->path[i].start_ns, job->path[i - 1].end_ns);
  int64_t sum = 0;
  for (const PathShare& share : job->result.path) sum += share.time_ns;
  EXPECT_EQ(sum, job->result.path_ns);
  EXPECT_EQ(job->result.path_ns, job->path.back().end_ns - job->path.front().start_ns);
  const PathShare& most = job->result.path[0];
  EXPECT_EQ(most.rank, 3);
  EXPECT_EQ(most.name, "gemm");
  EXPECT_EQ(most.op, "aten::mm");
  EXPECT_EQ(most.module, "Block_0");
  EXPECT_EQ(most.line, "model.py(12): forward");
}

TEST(CriticalPath, ends_when_collectives_of_two_groups_overlap) {
  const auto job = studied({.ranks = 16, .tensor = 4, .pipeline = 2, .experts = true, .missing_rows = 0.05});
  EXPECT_GT(job->result.path_ns, 0);
}

}  // namespace
}  // namespace firelane::ranks
