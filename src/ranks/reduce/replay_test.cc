#include "ranks/reduce/replay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ranks/reduce/waits.h"
#include "ranks/testing/generate.h"

namespace firelane::ranks {
namespace {

TEST(ReplayGraph, a_collective_begins_to_move_when_the_last_member_has_arrived) {
  // Two ranks compute 10 and 30, meet for 5, and compute 10 again.
  const std::vector<ReplayOp> ops = {{.kind = 0},
                                     {.kind = 0},
                                     {.kind = 1, .sync = 0, .communicates = true, .after = {0}},
                                     {.kind = 1, .sync = 0, .communicates = true, .after = {1}},
                                     {.kind = 0, .after = {2}}};
  const std::vector<double> durations = {10, 30, 5, 5, 10};
  EXPECT_EQ(replay_graph(ops, durations), (std::vector<double>{10, 30, 35, 35, 45}));
}

TEST(ReplayGraph, the_ideal_is_the_mean_of_work_and_the_median_of_communication) {
  const std::vector<ReplayOp> ops = {{.kind = 0},
                                     {.kind = 0},
                                     {.kind = 1, .communicates = true},
                                     {.kind = 1, .communicates = true},
                                     {.kind = 1, .communicates = true}};
  const std::vector<double> durations = {10, 30, 1, 2, 99};
  EXPECT_EQ(ideal_durations(ops, durations), (std::vector<double>{20, 20, 2, 2, 2}));
}

TEST(ReplayGraph, a_circle_has_no_end) {
  const std::vector<ReplayOp> ops = {{.after = {1}}, {.after = {0}}};
  const std::vector<double> durations = {1, 1};
  EXPECT_EQ(replay_graph(ops, durations), (std::vector<double>{-1, -1}));
}

struct Played {
  Intake intake;
  Matches matches;
  Clocks clocks;
};

void play(const testing::Job& job, Played& out) {
  for (const Part& part : job.parts) out.intake.add(part);
  out.intake.finish();
  out.matches = match_collectives(out.intake);
  out.clocks = fit_clocks(out.intake, out.matches);
}

TEST(ReplayJob, repeats_what_was_recorded) {
  Played p;
  play(testing::generate({.ranks = 16, .tensor = 4, .pipeline = 2, .sequence = true}), p);
  JobReplay replay{.intake = p.intake, .matches = p.matches, .clocks = p.clocks};
  const Waits waits =
      find_waits(p.intake, p.matches, p.clocks, std::vector<uint32_t>(p.intake.groups.size(), 0), replay);
  const double replayed = replay.run(std::vector<JobReplay::Work>(16, JobReplay::Work::kRecorded));
  EXPECT_NEAR(replayed / waits.recorded_ns, 1, 0.1);
}

// The chains of a job, written as the graph that they stand for.
TEST(ReplayJob, agrees_with_the_graph_that_it_stands_for) {
  Played p;
  play(testing::generate({.ranks = 4, .tensor = 2, .steps = 3, .sequence = true}), p);
  JobReplay replay{.intake = p.intake, .matches = p.matches, .clocks = p.clocks};
  (void)find_waits(p.intake, p.matches, p.clocks, std::vector<uint32_t>(p.intake.groups.size(), 0), replay);
  std::vector<ReplayOp> ops;
  std::vector<double> durations;
  std::vector<uint32_t> last(4, UINT32_MAX);
  size_t entered = 0;
  for (const uint32_t index : replay.order) {
    const Instance& instance = p.matches.instances[index];
    for (uint32_t i = instance.begin; i < instance.end; ++i) {
      const Member& m = p.matches.members[i];
      std::vector<uint32_t> after;
      if (last[m.rank] != UINT32_MAX) {
        ops.push_back({.after = {last[m.rank]}});
        durations.push_back(static_cast<double>(replay.work[i].work_ns));
        after.push_back(static_cast<uint32_t>(ops.size()) - 1);
      } else {
        ++entered;
      }
      last[m.rank] = static_cast<uint32_t>(ops.size());
      ops.push_back({.sync = index, .after = after});
      durations.push_back(static_cast<double>(replay.transfer_ns[index]));
    }
  }
  ASSERT_EQ(entered, 4u);
  const std::vector<double> ends = replay_graph(ops, durations);
  const double graph = *std::max_element(ends.begin(), ends.end());
  const double job = replay.run(std::vector<JobReplay::Work>(4, JobReplay::Work::kRecorded));
  // The job is measured from the end of the collective with which the last rank entered.
  EXPECT_NEAR(job / graph, 1, 0.02);
}

}  // namespace
}  // namespace firelane::ranks
