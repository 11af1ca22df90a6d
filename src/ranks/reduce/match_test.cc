// Jobs in which little was recorded: what a wrong match would fit as well is refused.
#include "ranks/reduce/match.h"

#include <gtest/gtest.h>

#include "ranks/testing/generate.h"

namespace firelane::ranks {
namespace {

using testing::generate;
using testing::Job;
using testing::JobSpec;
using testing::Score;
using testing::score;

constexpr int64_t kWorld = 0;  // index of the group of all ranks in a part; once a step

template <typename Keep>
void keep_rows(Job& job, size_t part, const Keep& keep) {
  const PartCollectives all = std::exchange(job.parts[part].collectives, {});
  const std::vector<int64_t> identity = std::exchange(job.identity[part], {});
  PartCollectives& kept = job.parts[part].collectives;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!keep(all.group[i], all.step[i])) continue;
    job.identity[part].push_back(identity[i]);
#define FL_PART_COLUMN(name, meaning) kept.name.push_back(all.name[i]);
    FL_PART_COLLECTIVES(FL_PART_COLUMN)
#undef FL_PART_COLUMN
  }
}

// Two hosts and steps that are all equally long. One recorded all of them, but of the group of all ranks only step 5;
// the other one only step 4.
Job two_hosts_with_one_step_of_the_world() {
  Job job = generate({.ranks = 16, .jitter = 0, .offset_ns = 3e6});
  for (size_t p = 0; p < 16; ++p) {
    keep_rows(job, p, [&](int64_t group, int64_t step) { return p < 8 ? group != kWorld || step == 5 : step == 4; });
  }
  return job;
}

TEST(Match, ranks_that_somebody_says_share_a_machine_have_one_clock) {
  // Steps of one length and ends far apart: nobody can tell one shift from another, but for who knows the clocks.
  testing::JobSpec spec{.ranks = 8, .jitter = 0, .end_spread_ns = 60'000, .offset_ns = 0, .hosts_named = false};
  const auto matched = [&](int64_t ranks_per_host) {
    Intake intake;
    intake.ranks_per_host = ranks_per_host;
    for (Part& part : testing::generate(spec).parts) intake.add(std::move(part));
    const Reduction job = reduce(intake).value();
    EXPECT_EQ(job.hosts, ranks_per_host == 0 ? 0 : 1);
    return job.matched_share();
  };
  EXPECT_LT(matched(0), 0.9);
  EXPECT_EQ(matched(8), 1);
}

TEST(Match, a_shift_is_not_the_only_one_because_a_group_has_no_other_collective) {
  const Score s = score(two_hosts_with_one_step_of_the_world());
  EXPECT_EQ(s.wrong, 0);
  EXPECT_EQ(s.outside_bound, 0);
  EXPECT_GT(s.refused[static_cast<size_t>(Refusal::kPeriodic)], 0);
}

TEST(Match, rows_that_are_missing_do_not_shift_the_others) {
  // Each of these jobs had matches of different collectives: one in 20 of `ranks_study stress`.
  const JobSpec few_rows{.seed = 107,
                         .ranks = 32,
                         .gpus_per_host = 4,
                         .tensor = 2,
                         .pipeline = 2,
                         .experts = true,
                         .steps = 8,
                         .jitter = 0.01,
                         .overlap = true,
                         .missing_rows = 0.04,
                         .cut_rows = 45,
                         .missing_ranks = {1, 6}};
  JobSpec unnamed = few_rows;
  unnamed.seed = 41, unnamed.ranks = 16, unnamed.steps = 16, unnamed.jitter = 0.002, unnamed.end_spread_ns = 100'000;
  unnamed.hosts_named = false, unnamed.missing_rows = 0.02, unnamed.missing_arguments = 0.1, unnamed.cut_rows = 15;
  const JobSpec data_parallel{.seed = 363,
                              .ranks = 64,
                              .steps = 16,
                              .jitter = 0.005,
                              .end_spread_ns = 100'000,
                              .overlap = true,
                              .offset_ns = 24e6,
                              .missing_rows = 0.02,
                              .cut_rows = 45};
  for (const JobSpec& spec : {few_rows, unnamed, data_parallel}) {
    const Score s = score(generate(spec));
    EXPECT_EQ(s.wrong, 0) << spec.seed;
    EXPECT_EQ(s.outside_bound, 0) << spec.seed;
    EXPECT_GT(s.matched, 0) << spec.seed;
  }
}

TEST(Match, rows_that_name_no_group_are_of_no_common_one_where_other_rows_name_theirs) {
  // In a job of 16,384 ranks, 21 had a single row of the group of all ranks, without arguments: of different steps.
  Job job = two_hosts_with_one_step_of_the_world();
  for (Part& part : job.parts) {
    for (size_t i = 0; i < part.collectives.size(); ++i) {
      PartCollectives& c = part.collectives;
      if (c.group[i] == kWorld) c.group[i] = c.dtype[i] = c.in_elements[i] = c.out_elements[i] = -1;
    }
  }
  const Score s = score(job);
  EXPECT_EQ(s.wrong, 0);
  EXPECT_EQ(s.outside_bound, 0);
  EXPECT_EQ(s.unaccounted, 0);
  EXPECT_EQ(s.refused[static_cast<size_t>(Refusal::kNoGroup)], 16);
}

TEST(Match, rows_that_name_no_group_match_where_no_row_names_one) {
  Job job = generate({.ranks = 8});
  for (Part& part : job.parts) {
    part.groups.clear();
    for (int64_t& group : part.collectives.group) group = -1;
  }
  const Score s = score(job);
  EXPECT_EQ(s.matched, s.possible);
  EXPECT_EQ(s.wrong, 0);
}

TEST(Match, the_clock_of_the_host_beside_it_fits_by_chance_where_nobody_knows_that_of_its_own) {
  // No host is named. Ranks 8 to 15 have one row each, of step 4, and a clock that makes it look like step 5.
  Job job = generate({.ranks = 16, .offset_ns = 0, .drift_ppm = 0, .hosts_named = false});
  const PartCollectives& c = job.parts[0].collectives;
  int64_t ends[2] = {};
  for (size_t i = 0; i < c.size(); ++i) {
    if (c.group[i] == kWorld && (c.step[i] == 4 || c.step[i] == 5)) ends[c.step[i] - 4] = c.end_ns[i];
  }
  for (size_t p = 8; p < 16; ++p) {
    keep_rows(job, p, [](int64_t group, int64_t step) { return group == kWorld && step == 4; });
    job.parts[p].unix_start_ns += ends[1] - ends[0];
    job.clock[p].first += static_cast<double>(ends[1] - ends[0]);
  }
  const Score s = score(job);
  EXPECT_EQ(s.wrong, 0);
  EXPECT_EQ(s.outside_bound, 0);
}

}  // namespace
}  // namespace firelane::ranks
