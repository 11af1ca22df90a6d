#include "ranks/reduce/shuffle.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>

#include "ranks/testing/generate.h"

namespace firelane::ranks {
namespace {

using testing::generate;
using testing::Job;

// What many machines would find: slices of all ranks, each group and range matched apart from the others.
std::vector<std::string> matched_apart(const Job& job, int64_t range) {
  std::string frames;
  for (const Part& part : job.parts) frames += slice_part(part, range);
  // Two machines: frames go by their keys, as a shuffle deals them.
  std::array<std::string, 2> dealt;
  for (size_t at = 0; at < frames.size();) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, frames.data() + at, sizeof(bytes));
    uint32_t key_bytes = 0;
    std::memcpy(&key_bytes, frames.data() + at + 8, sizeof(key_bytes));
    const std::string key = frames.substr(at + 12, 8 + key_bytes);  // range and group
    dealt[std::hash<std::string>{}(key) % 2] += frames.substr(at, 4 + bytes);
    at += 4 + bytes;
  }
  return {match_slices(dealt[0], "a").value(), match_slices(dealt[1], "b").value()};
}

std::shared_ptr<const StudiedJob> reduced(const Job& job, const std::vector<std::string>& matches) {
  auto intake = std::make_shared<Intake>();
  for (const Part& part : job.parts) intake->add(part);
  for (const std::string& each : matches) EXPECT_TRUE(intake->matched.add(each, "matches").ok());
  return study_job(std::move(intake)).value();
}

bool same(const Matches& a, const Matches& b) {
  const auto instance = [](const Instance& x, const Instance& y) {
    return x.group == y.group && x.signature == y.signature && x.begin == y.begin && x.end == y.end;
  };
  const auto member = [](const Member& x, const Member& y) { return x.rank == y.rank && x.row == y.row; };
  return std::equal(a.instances.begin(), a.instances.end(), b.instances.begin(), b.instances.end(), instance) &&
         std::equal(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(), member);
}

// In how many groups the reduce took what was matched elsewhere.
size_t taken(const StudiedJob& job) {
  size_t count = 0;
  std::vector<std::vector<Member>> members;
  for (uint32_t g = 0; g < job.intake.groups.size(); ++g) {
    count += job.intake.matched.members_of(job.intake, g, members) ? 1 : 0;
  }
  return count;
}

TEST(Shuffle, collectives_matched_on_several_machines_are_those_of_one) {
  Job job = generate({.ranks = 16, .tensor = 2, .pipeline = 2, .experts = true, .sequence = true, .cut_rows = 9});
  for (int64_t& sequence : job.parts[3].collectives.sequence) sequence -= sequence % 5 == 4 ? 1 : 0;  // coalesced
  job.parts[5].collectives.in_elements[7] = 12'345;                                                   // mismatched
  const auto alone = reduced(job, {});
  for (const int64_t range : {int64_t{1}, int64_t{7}, kRangeOfNumbers}) {
    const auto together = reduced(job, matched_apart(job, range));
    EXPECT_TRUE(same(together->matches, alone->matches)) << range;
    EXPECT_EQ(taken(*together), together->intake.groups.size()) << range;
  }
}

// The report is a function of these and of the parts.
bool same_report(const StudiedJob& a, const StudiedJob& b) {
  const auto group = [](const GroupMatch& x, const GroupMatch& y) {
    return x.by == y.by && x.rows == y.rows && x.matched_rows == y.matched_rows && x.instances == y.instances &&
           x.refused == y.refused;
  };
  return same(a.matches, b.matches) && a.matches.instance_of_row == b.matches.instance_of_row &&
         a.matches.first_mismatch == b.matches.first_mismatch && a.result.refused == b.result.refused &&
         a.result.matched_rows == b.result.matched_rows && a.result.notes == b.result.notes &&
         std::ranges::equal(a.matches.groups, b.matches.groups, group);
}

TEST(Shuffle, every_fault_gives_the_same_report_with_and_without_numbers) {
  using testing::JobSpec;
  const JobSpec plain{.ranks = 16, .gpus_per_host = 4, .tensor = 2, .pipeline = 2, .experts = true, .steps = 5};
  const auto with = [&](auto change) {
    JobSpec spec = plain;
    change(spec);
    return spec;
  };
  const JobSpec faults[] = {
      plain,
      with([](JobSpec& s) { s.cut_rows = 20; }),
      with([](JobSpec& s) { s.missing_rows = 0.02; }),
      with([](JobSpec& s) { s.missing_arguments = 0.05; }),
      with([](JobSpec& s) { s.scrambled_names = true; }),
      with([](JobSpec& s) { s.hosts_named = false; }),
      with([](JobSpec& s) { s.missing_ranks = {1, 6}; }),
      with([](JobSpec& s) { s.ranks = 40, s.tensor = s.pipeline = 1, s.experts = false, s.cut_rank_lists = true; }),
      with([](JobSpec& s) { s.end_spread_ns = 100'000; }),
      with([](JobSpec& s) { s.host_spread_ns = 100'000; }),
      with([](JobSpec& s) { s.overlap = true; }),
      with([](JobSpec& s) {
        s.cut_rows = 20, s.missing_rows = 0.02, s.missing_arguments = 0.05, s.scrambled_names = true;
        s.hosts_named = false, s.missing_ranks = {1, 6}, s.end_spread_ns = 100'000;
      }),
  };
  for (size_t i = 0; i < std::size(faults); ++i) {
    for (const bool sequence : {true, false}) {
      JobSpec spec = faults[i];
      spec.sequence = sequence;
      const Job job = generate(spec);
      const auto alone = reduced(job, {});
      const auto together = reduced(job, matched_apart(job, 3));
      EXPECT_TRUE(same_report(*together, *alone)) << "fault " << i << (sequence ? ", numbered" : "");
      if (!sequence) EXPECT_EQ(taken(*together), 0U) << i;
      if (sequence && spec.missing_arguments == 0) EXPECT_GT(taken(*together), 0U) << i;
    }
  }
}

TEST(Shuffle, matches_of_other_parts_are_not_believed) {
  const Job job = generate({.ranks = 8, .sequence = true});
  Job shorter = generate({.ranks = 8, .sequence = true});
  shorter.parts.pop_back();
  Job renumbered = generate({.ranks = 8, .sequence = true});
  for (int64_t& sequence : renumbered.parts[2].collectives.sequence) sequence += 500;  // alone under each number
  const auto alone = reduced(job, {});
  for (const Job& other : {shorter, renumbered}) {
    const auto studied = reduced(job, matched_apart(other, 100));
    EXPECT_EQ(taken(*studied), 0U);
    EXPECT_TRUE(same(studied->matches, alone->matches));
  }
}

TEST(Shuffle, a_damaged_frame_is_one_clear_line) {
  const std::string frames = slice_part(generate({.ranks = 2, .steps = 2, .sequence = true}).parts[0]);
  for (size_t size = 1; size < frames.size(); size += 7) {
    const Result<std::string> cut = match_slices(frames.substr(0, size), "slices");
    if (cut.ok()) continue;  // between two frames
    EXPECT_EQ(cut.error().message, "slices: not what firelane ranks slice wrote, or damaged; make it again");
  }
  for (size_t at = 0; at < frames.size(); at += 3) {
    std::string damaged = frames;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    EXPECT_FALSE(match_slices(damaged, "slices").ok()) << at;
  }
  EXPECT_FALSE(ShuffledMatches().add(frames, "slices").ok()) << "slices are no matches";
}

}  // namespace
}  // namespace firelane::ranks
