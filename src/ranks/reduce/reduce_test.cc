#include "ranks/reduce/reduce.h"

#include <gtest/gtest.h>

#include "ranks/testing/generate.h"

namespace firelane::ranks {
namespace {

using testing::generate;
using testing::Job;
using testing::JobSpec;
using testing::Score;
using testing::score;

TEST(Reduce, sequence_numbers_match_everything) {
  const Score s = score(generate({.ranks = 32, .tensor = 4, .pipeline = 2, .experts = true, .sequence = true}));
  EXPECT_EQ(s.matched, s.possible);
  EXPECT_EQ(s.wrong, 0);
}

TEST(Reduce, order_matches_over_cut_windows_without_a_wrong_one) {
  const Score s = score(generate({.ranks = 32, .tensor = 4, .pipeline = 2, .experts = true, .cut_rows = 9}));
  EXPECT_GE(s.matched, s.possible - s.possible / 1000);
  EXPECT_EQ(s.wrong, 0);
}

TEST(Reduce, a_send_without_arguments_goes_where_the_others_of_the_rank_go) {
  for (uint64_t seed = 101; seed <= 105; ++seed) {
    const Score s = score(generate({.seed = seed, .ranks = 16, .tensor = 2, .pipeline = 2, .missing_arguments = 0.05}));
    EXPECT_GE(s.matched, s.possible - s.possible / 1000) << seed;
    EXPECT_EQ(s.wrong, 0) << seed;
  }
}

TEST(Reduce, a_send_without_arguments_of_a_rank_that_sends_to_several_is_refused) {
  const JobSpec spec{.seed = 101, .ranks = 24, .tensor = 2, .pipeline = 3, .missing_arguments = 0.05};
  EXPECT_EQ(score(generate(spec)).wrong, 0);
  Intake intake;
  for (const Part& part : generate(spec).parts) intake.add(part);
  const auto reduced = reduce(intake);
  ASSERT_TRUE(reduced.ok());
  EXPECT_GT(reduced.value().refused[static_cast<size_t>(Refusal::kNoPeer)], 0);
}

TEST(Reduce, clocks_lie_inside_of_their_bound) {
  const Score s = score(generate({.ranks = 32, .tensor = 4}));
  EXPECT_EQ(s.outside_bound, 0);
  EXPECT_LT(s.worst_clock_ns, 5'000);
}

TEST(Reduce, names_the_planted_straggler_and_its_cause) {
  for (const Cause cause :
       {Cause::kMoreWork, Cause::kSlowerKernels, Cause::kInput, Cause::kGc, Cause::kAllocation, Cause::kHost}) {
    const Score s = score(generate({.ranks = 16, .tensor = 4, .straggler = 5, .cause = cause}));
    EXPECT_EQ(s.first_straggler, 5) << name_of(cause);
    EXPECT_EQ(name_of(s.cause), name_of(cause));
  }
}

TEST(Reduce, a_healthy_job_has_no_straggler) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(score(generate({.seed = seed, .ranks = 16, .tensor = 2})).first_straggler, -1) << seed;
  }
}

TEST(Reduce, a_rank_twice_is_refused) {
  Intake intake;
  const Job job = generate({.ranks = 2, .steps = 1});
  intake.add(job.parts[1]);
  intake.add(job.parts[1]);
  EXPECT_EQ(reduce(intake).error().message,
            "rank 1 twice: rank1.json and rank1.json; give one trace of each rank of one run");
}

}  // namespace
}  // namespace firelane::ranks
