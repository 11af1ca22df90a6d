#include "ranks/reduce/reduce.h"

#include <gtest/gtest.h>

#include <map>

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

TEST(Reduce, hosts_whose_ends_lie_far_apart_match_by_all_their_ranks_together) {
  // 100 us, and steps that differ by less: of two ranks of a group several shifts fit.
  for (const int64_t tensor : {1, 4}) {
    const Score s = score(generate({.seed = 11, .ranks = 32, .tensor = tensor, .end_spread_ns = 100'000}));
    EXPECT_EQ(s.matched, s.possible) << tensor;
    EXPECT_EQ(s.wrong, 0) << tensor;
    EXPECT_LT(s.worst_clock_ns, 100'000) << tensor;
  }
}

TEST(Reduce, a_rank_with_few_rows_gets_its_clock_from_all_its_groups_and_the_ranks_beside_it) {
  for (uint64_t seed = 201; seed <= 206; ++seed) {
    const Score s = score(generate({.seed = seed,
                                    .ranks = 16,
                                    .hosts_named = false,
                                    .missing_rows = 0.01,
                                    .missing_arguments = 0.05,
                                    .cut_rows = 20}));
    EXPECT_GE(s.matched, s.possible - s.possible / 1000) << seed;
    EXPECT_EQ(s.wrong, 0) << seed;
  }
}

TEST(Reduce, shifts_that_cannot_be_told_apart_are_refused_as_periodic) {
  // What differs from host to host is as large as what differs from step to step: no mean over ranks helps.
  const Score s = score(generate({.seed = 4, .ranks = 32, .steps = 4, .jitter = 0.005, .host_spread_ns = 100'000}));
  EXPECT_EQ(s.wrong, 0);
  EXPECT_GT(s.refused[static_cast<size_t>(Refusal::kPeriodic)], 0);
}

TEST(Reduce, hosts_that_end_far_apart_match_where_any_other_shift_ends_before_it_begins) {
  int64_t matched = 0;
  int64_t possible = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Score s = score(generate({.seed = seed, .ranks = 64, .tensor = 4, .host_spread_ns = 100'000}));
    EXPECT_EQ(s.wrong, 0) << seed;
    EXPECT_EQ(s.outside_bound, 0) << seed;
    matched += s.matched;
    possible += s.possible;
  }
  EXPECT_GT(matched, possible - possible / 5);
}

TEST(Reduce, rows_that_another_rank_has_too_are_not_called_outside_of_its_recording) {
  // Ranks for which several shifts fit: the rows of the rank that they were laid along were called outside.
  const JobSpec hosts{.ranks = 64, .tensor = 2, .pipeline = 2, .experts = true, .host_spread_ns = 100'000};
  const JobSpec faults{.ranks = 64,
                       .end_spread_ns = 100'000,
                       .hosts_named = false,
                       .missing_rows = 0.01,
                       .missing_arguments = 0.05,
                       .cut_rows = 20,
                       .scrambled_names = true};
  for (JobSpec spec : {hosts, faults}) {
    for (spec.seed = 31'001; spec.seed <= 31'002; ++spec.seed) {
      const Score s = score(generate(spec));
      EXPECT_EQ(s.wrongly_outside, 0) << spec.seed;
      EXPECT_EQ(s.unaccounted, 0) << spec.seed;
      EXPECT_EQ(s.wrong, 0) << spec.seed;
    }
  }
  // Rows that only one rank has are.
  const Score cut = score(generate({.ranks = 32, .tensor = 4, .cut_rows = 20}));
  EXPECT_EQ(cut.wrongly_outside, 0);
  EXPECT_EQ(cut.unaccounted, 0);
  EXPECT_GT(cut.refused[static_cast<size_t>(Refusal::kOutside)], 0);
  EXPECT_EQ(cut.refused[static_cast<size_t>(Refusal::kUncertain)], 0);
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
  for (const Cause cause : {Cause::kMoreWork, Cause::kSlowerKernels, Cause::kInput, Cause::kGc, Cause::kAllocation,
                            Cause::kHost, Cause::kCheckpoint}) {
    const Score s = score(generate({.ranks = 16, .tensor = 4, .straggler = 5, .cause = cause}));
    EXPECT_EQ(s.first_straggler, 5) << name_of(cause);
    EXPECT_EQ(name_of(s.cause), name_of(cause));
  }
}

TEST(Reduce, work_beside_the_gradients_all_reduce_is_not_waiting) {
  JobSpec spec{.ranks = 16, .steps = 4, .overlap = true, .straggler = 5, .cause = Cause::kSlowerKernels};
  const Score late = score(generate(spec));
  EXPECT_EQ(late.first_straggler, 5);
  EXPECT_EQ(name_of(late.cause), name_of(Cause::kSlowerKernels));
  const auto percent_hidden = [](const JobSpec& each) {
    return testing::studied(each)->result.by_rank[0].overlap_percent;
  };
  EXPECT_GT(percent_hidden(spec), 10);
  spec.overlap = false;
  EXPECT_EQ(percent_hidden(spec), 0);
}

TEST(Reduce, a_healthy_job_has_no_straggler) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(score(generate({.seed = seed, .ranks = 16, .tensor = 2})).first_straggler, -1) << seed;
  }
}

TEST(Reduce, bandwidth_is_compared_with_the_links_of_a_host_and_not_between_hosts) {
  const auto links = [](JobSpec spec, const char* device) {
    Intake intake;
    for (Part part : generate(spec).parts) {
      part.device = device;
      intake.add(std::move(part));
    }
    std::map<GroupKind, std::pair<Link, double>> out;
    const auto reduced = reduce(intake);
    for (const CollectiveResult& each : reduced.value().collectives) {
      out[each.kind] = {each.link, each.link_gb_s};
    }
    return out;
  };
  using Found = std::pair<Link, double>;
  const JobSpec spec{.ranks = 16, .gpus_per_host = 8, .tensor = 8, .steps = 2, .sequence = true};
  auto found = links(spec, "NVIDIA H200");
  EXPECT_EQ(found[GroupKind::kTensor], Found(Link::kInHost, 450));
  EXPECT_EQ(found[GroupKind::kData], Found(Link::kBetweenHosts, 0));
  EXPECT_EQ(links(spec, "NVIDIA A100-SXM4-80GB")[GroupKind::kTensor], Found(Link::kInHost, 300));
  EXPECT_EQ(links(spec, "Tesla P100-SXM2-16GB")[GroupKind::kTensor], Found(Link::kInHost, 80));
  EXPECT_EQ(links(spec, "Tesla P100-PCIE-16GB")[GroupKind::kTensor], Found(Link::kInHost, 0));
  EXPECT_EQ(links(spec, "NVIDIA L4")[GroupKind::kTensor], Found(Link::kInHost, 0)) << "PCIe";
  JobSpec unnamed = spec;
  unnamed.hosts_named = false;
  EXPECT_EQ(links(unnamed, "NVIDIA H200")[GroupKind::kTensor], Found(Link::kUnknown, 0));
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
