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
