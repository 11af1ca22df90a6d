#include "ranks/reduce/flight_join.h"

#include <gtest/gtest.h>

#include "ranks/reduce/findings.h"
#include "ranks/reduce/studied_job.h"
#include "ranks/testing/generate.h"

namespace firelane::ranks {
namespace {

// The dump of a rank that called `calls` collectives of all ranks; the last one has not ended.
FlightLog dump_of(int64_t rank, int64_t ranks, int64_t calls) {
  FlightLog log;
  log.rank = rank;
  FlightGroup& group = log.groups.emplace_back();
  group.name = "0";
  group.description = "default_pg";
  for (int64_t r = 0; r < ranks; ++r) group.ranks.push_back(r);
  for (int64_t sequence = 1; sequence <= calls; ++sequence) {
    log.entries.push_back({.collective_sequence = sequence,
                           .created_ns = sequence * 1'000'000'000,
                           .group = log.strings.intern("0"),
                           .group_description = log.strings.intern("default_pg"),
                           .collective = log.strings.intern("all_reduce"),
                           .input_sizes = log.strings.intern("[[1]]"),
                           .place = log.strings.intern("train.py(41): step"),
                           .state = sequence == calls && calls == 5 ? CommState::kStarted : CommState::kCompleted});
  }
  return log;
}

std::shared_ptr<const StudiedJob> joined(int64_t straggler) {
  auto intake = std::make_shared<Intake>();
  const testing::Job job =
      testing::generate({.ranks = 4, .sequence = true, .straggler = straggler, .cause = Cause::kGc, .extra = 0.3});
  for (const Part& part : job.parts) intake->add(part);
  // Rank 2 has not called the fifth; of rank 3 there is no dump.
  std::vector<FlightLog> logs;
  for (const int64_t rank : {0, 1, 2}) logs.push_back(dump_of(rank, 4, rank == 2 ? 4 : 5));
  return study_job(std::move(intake), logs).value();
}

TEST(FlightJoin, a_rank_that_holds_up_others_has_a_history_in_the_traces) {
  const auto job = joined(2);
  ASSERT_TRUE(job->result.flight.hangs.hangs());
  ASSERT_FALSE(job->result.flight.history.empty());
  EXPECT_TRUE(job->result.flight.history[0].starts_with("rank 2 already held up all others in the recorded steps"))
      << job->result.flight.history[0];
  const std::vector<RankFinding> findings = rank_findings(job->result);
  EXPECT_EQ(findings[0].id, "hang");
  EXPECT_EQ(joined(-1)->result.flight.history[0],
            "rank 2 was not late in the recorded steps: what stops it came later");
}

TEST(FlightJoin, collectives_are_found_in_both_by_group_and_number) {
  const auto job = joined(-1);
  EXPECT_EQ(job->result.flight.ranks_with_both, 3);
  EXPECT_EQ(job->result.flight.in_both, 14);  // five of two ranks, four of the third
  ASSERT_EQ(job->result.flight.places.size(), 1u);
  EXPECT_EQ(job->result.flight.places[0].place, "train.py(41): step");
}

TEST(FlightJoin, a_job_without_dumps_says_nothing_of_them) {
  const auto job = testing::studied({.ranks = 2, .steps = 2});
  EXPECT_EQ(job->result.flight.hangs.dumps, 0);
}

}  // namespace
}  // namespace firelane::ranks
