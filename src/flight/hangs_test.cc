// Jobs of a few ranks, each entry written by hand; who is blamed, and for what.
#include "flight/hangs.h"

#include <gtest/gtest.h>

namespace firelane::flight {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class Rank {
 public:
  explicit Rank(int64_t rank, std::vector<int64_t> world) {
    log_.rank = rank;
    group("0", "default_pg", std::move(world));
  }
  Rank& group(const std::string& name, const std::string& purpose, std::vector<int64_t> ranks) {
    log_.groups.push_back({.name = name, .description = purpose, .ranks = std::move(ranks)});
    return *this;
  }
  // Sequences count by themselves in each group.
  Rank& call(std::string_view collective, CommState state, const std::string& group = "0",
             std::string_view sizes = "[[8]]", std::string_view types = "[\"Float\"]") {
    return add(collective, state, group, sizes, types, ++sequence_[group], false);
  }
  Rank& transfer(std::string_view name, int64_t sequence, CommState state) {
    return add(name, state, "0", "[[8]]", "[\"Float\"]", sequence, true);
  }
  Rank& skip(const std::string& group, int64_t count) {
    sequence_[group] += count;
    return *this;
  }
  operator FlightLog() { return std::move(log_); }  // NOLINT(google-explicit-constructor)

 private:
  Rank& add(std::string_view collective, CommState state, const std::string& group, std::string_view sizes,
            std::string_view types, int64_t sequence, bool is_p2p) {
    StringPool& strings = log_.strings;
    time_ns_ += kSecond;
    log_.entries.push_back({.collective_sequence = is_p2p ? kNoNumber : sequence,
                            .p2p_sequence = is_p2p ? sequence : kNoNumber,
                            .created_ns = time_ns_,
                            .group = strings.intern(group),
                            .group_description = strings.intern(group == "0" ? "default_pg" : "tp"),
                            .collective = strings.intern(collective),
                            .input_sizes = strings.intern(sizes),
                            .output_sizes = strings.intern(sizes),
                            .input_dtypes = strings.intern(types),
                            .output_dtypes = strings.intern(types),
                            .place = strings.intern("train.py(" + std::to_string(sequence) + "): step"),
                            .state = state,
                            .is_p2p = is_p2p});
    return *this;
  }
  FlightLog log_;
  std::map<std::string, int64_t> sequence_;
  int64_t time_ns_ = 100 * kSecond;
};

constexpr CommState kDone = CommState::kCompleted, kOpen = CommState::kStarted, kQueued = CommState::kScheduled;

HangReport hangs_of(std::vector<FlightLog> logs) { return find_hangs(logs); }

template <typename... Ranks>
HangReport report(Ranks&&... ranks) {
  std::vector<FlightLog> logs;
  (logs.push_back(std::forward<Ranks>(ranks)), ...);
  return hangs_of(std::move(logs));
}

using Numbers = std::vector<int64_t>;

TEST(Hangs, a_rank_that_did_not_call_a_collective_is_named) {
  const HangReport r = report(Rank(0, {0, 1, 2}).call("broadcast", kDone).call("all_reduce", kOpen),
                              Rank(1, {0, 1, 2}).call("broadcast", kDone),
                              Rank(2, {0, 1, 2}).call("broadcast", kDone).call("all_reduce", kQueued));
  ASSERT_EQ(r.culprits.size(), 1u);
  EXPECT_EQ(r.culprits[0].rank, 1);
  EXPECT_EQ(r.culprits[0].blocked, (Numbers{0, 2}));
  EXPECT_EQ(r.culprits[0].missing.collective, "all_reduce");
  EXPECT_EQ(r.culprits[0].missing.sequence, 2);
  EXPECT_EQ(r.culprits[0].place, "train.py(2): step");
  EXPECT_EQ(r.culprits[0].last, "broadcast #1 of default_pg at train.py(1): step");
  ASSERT_EQ(r.waits.size(), 1u);
  EXPECT_EQ(r.waits[0].waiting, (Numbers{0, 2}));
  EXPECT_EQ(r.waits[0].missing, (Numbers{1}));
  EXPECT_TRUE(r.hangs());
  EXPECT_EQ(r.matched, 2);
}

// 2 waits in the small group for 1, which waits in the world for 0: 0 holds up both.
TEST(Hangs, the_one_who_waits_for_nobody_is_to_blame_not_a_victim_in_between) {
  const HangReport r = report(Rank(0, {0, 1, 2}), Rank(1, {0, 1, 2}).group("5", "tp", {1, 2}).call("all_reduce", kOpen),
                              Rank(2, {0, 1, 2}).group("9", "tp", {1, 2}).call("all_gather", kOpen, "9"));
  ASSERT_EQ(r.culprits.size(), 1u);
  EXPECT_EQ(r.culprits[0].rank, 0);
  EXPECT_EQ(r.culprits[0].blocked, (Numbers{1, 2}));
  EXPECT_EQ(r.culprits[0].last, "nothing");
}

TEST(Hangs, groups_called_in_different_order_are_a_circle) {
  const HangReport r = report(Rank(0, {0, 1}).group("1", "tp", {0, 1}).call("all_reduce", kOpen),
                              Rank(1, {0, 1}).group("1", "tp", {0, 1}).call("all_reduce", kOpen, "1"));
  EXPECT_TRUE(r.culprits.empty());
  ASSERT_EQ(r.circles.size(), 1u);
  EXPECT_EQ(r.circles[0], (Numbers{0, 1}));
}

TEST(Hangs, a_collective_that_all_called_and_that_does_not_end_is_no_ones_fault) {
  const HangReport r = report(Rank(0, {0, 1}).call("all_reduce", kOpen), Rank(1, {0, 1}).call("all_reduce", kDone));
  EXPECT_TRUE(r.culprits.empty() && r.waits.empty());
  ASSERT_EQ(r.stuck.size(), 1u);
  EXPECT_EQ(r.stuck[0].open, (Numbers{0}));
  EXPECT_EQ(r.stuck[0].completed, (Numbers{1}));
}

TEST(Hangs, a_job_that_goes_on_has_nothing_to_report) {
  const HangReport r = report(Rank(0, {0, 1}).call("all_reduce", kDone), Rank(1, {0, 1}).call("all_reduce", kDone));
  EXPECT_FALSE(r.hangs());
  EXPECT_TRUE(r.culprits.empty() && r.mismatches.empty() && r.absent_ranks.empty());
  EXPECT_EQ(r.world_size, 2);
}

TEST(Hangs, a_rank_without_a_dump_is_named_as_such) {
  const HangReport r =
      report(Rank(0, {0, 1, 2}).call("all_reduce", kOpen), Rank(1, {0, 1, 2}).call("all_reduce", kOpen));
  EXPECT_EQ(r.absent_ranks, (Numbers{2}));
  ASSERT_EQ(r.waits.size(), 1u);
  EXPECT_EQ(r.waits[0].unknown, (Numbers{2}));
  EXPECT_TRUE(r.waits[0].missing.empty());
  ASSERT_EQ(r.culprits.size(), 1u);
  EXPECT_FALSE(r.culprits[0].has_dump);
}

// The ring of rank 1 has lost its first entries: that it no longer has them does not mean that it did not call them.
TEST(Hangs, what_a_ring_has_lost_is_not_missing) {
  const HangReport r = report(Rank(0, {0, 1}).call("all_reduce", kOpen).call("all_reduce", kOpen),
                              Rank(1, {0, 1}).skip("0", 1).call("all_reduce", kOpen));
  EXPECT_TRUE(r.waits.empty());
  EXPECT_EQ(r.stuck.size(), 2u);
}

TEST(Hangs, different_operations_sizes_and_types_are_told_apart) {
  const HangReport r = report(
      Rank(0, {0, 1, 2}).call("all_reduce", kOpen).call("all_reduce", kOpen, "0", "[[8]]").call("all_to_all", kOpen),
      Rank(1, {0, 1, 2})
          .call("broadcast", kOpen)
          .call("all_reduce", kOpen, "0", "[[9]]")
          .call("all_to_all", kOpen, "0", "[[3]]"),
      Rank(2, {0, 1, 2})
          .call("all_reduce", kOpen)
          .call("all_reduce", kOpen, "0", "[[8]]", "[\"Half\"]")
          .call("all_to_all", kOpen));
  ASSERT_EQ(r.mismatches.size(), 3u);
  EXPECT_EQ(r.mismatches[0].kind, MismatchKind::kOperation);
  EXPECT_EQ(r.mismatches[0].variants[0].text, "all_reduce");
  EXPECT_EQ(r.mismatches[0].variants[0].ranks, (Numbers{0, 2}));
  EXPECT_EQ(r.mismatches[0].variants[1].ranks, (Numbers{1}));
  EXPECT_EQ(r.mismatches[1].kind, MismatchKind::kSizes);
  EXPECT_EQ(r.mismatches[1].variants[1].text, "[[9]] -> [[9]]");
  EXPECT_EQ(r.mismatches[2].kind, MismatchKind::kTypes);
}

TEST(Hangs, a_send_waits_for_its_receive) {
  const HangReport r = report(Rank(4, {4, 6}).transfer("send 0->1", 1, kDone).transfer("send 0->1", 2, kOpen),
                              Rank(6, {4, 6}).transfer("recv 1<-0", 1, kDone));
  ASSERT_EQ(r.culprits.size(), 1u);
  EXPECT_EQ(r.culprits[0].rank, 6);
  EXPECT_EQ(r.culprits[0].missing.collective, "send 0->1");
  EXPECT_EQ(r.matched, 1);
}

// Names are salted with each rank's own count of groups: members and purpose say which is which.
TEST(Hangs, groups_with_other_names_on_other_ranks_are_the_same) {
  const HangReport r = report(Rank(0, {0, 1}).group("a1", "tp", {0, 1}).call("all_reduce", kDone, "a1"),
                              Rank(1, {0, 1}).group("b7", "tp", {0, 1}).call("all_reduce", kDone, "b7"));
  EXPECT_EQ(r.groups, 2);
  EXPECT_EQ(r.matched, 1);
}

}  // namespace
}  // namespace firelane::flight
