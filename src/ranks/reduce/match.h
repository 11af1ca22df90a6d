// Which rows of different ranks are the same collective. A wrong match poisons clocks and blame, so that a row whose
// counterpart is not certain stays unmatched, under a reason.
//
// With sequence numbers the number decides, and operation and size must agree. Without, times do: ranks with one clock
// end a collective together (lay.h). Of machines with different clocks the difference has to be found first, from all
// their collectives (islands.h, shift.h); it must be the only one that fits, else their rows are refused.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ranks/reduce/rows.h"

namespace firelane::ranks {

inline constexpr uint32_t kNoInstance = UINT32_MAX;

struct Instance {
  uint32_t group = 0;
  uint32_t signature = 0;
  uint32_t begin = 0;  // its members
  uint32_t end = 0;
};

struct Member {
  uint32_t rank = 0;  // index in Intake::ranks
  uint32_t row = 0;
};

enum class Refusal : uint8_t {
  kAlone,      // no other rank of the group is there
  kOutside,    // recorded by one rank only: the others' windows do not reach it, or lack it
  kPeriodic,   // several shifts fit
  kUncertain,  // no shift fits well enough
  kMismatch,   // operation or size differ under the same sequence number
  kNoPeer,     // a send or receive that does not say with whom
  kBatched,    // several sends and receives in one kernel
  kCausality,  // a rank ends before another begins, by more than clocks explain
  kNoGroup,    // says no group, where other rows do
};
inline constexpr size_t kRefusalCount = 9;
std::string_view name_of(Refusal refusal);     // "alone", ...
std::string_view meaning_of(Refusal refusal);  // one line, with what to do

enum class MatchedBy : uint8_t { kSequence, kOrder, kNone };
std::string_view name_of(MatchedBy by);

struct GroupMatch {
  MatchedBy by = MatchedBy::kNone;
  int64_t rows = 0;
  int64_t matched_rows = 0;
  int64_t instances = 0;
  std::array<int64_t, kRefusalCount> refused{};
};

struct Matches {
  std::vector<Instance> instances;
  std::vector<Member> members;
  std::vector<std::vector<uint32_t>> instance_of_row;  // by rank; kNoInstance
  std::vector<GroupMatch> groups;
  std::string first_mismatch;  // what differs, of the first under one sequence number
};

Matches match_collectives(const Intake& intake);

// The rows of an instance lie far apart in memory, one in each rank. Called for a member, this asks for the row of one
// that follows soon, so that a walk over members does not wait for each.
inline void fetch_ahead(const Intake& intake, const Matches& matches, size_t member) {
  constexpr size_t kAhead = 12;
  if (member + kAhead >= matches.members.size()) return;
  const Member& next = matches.members[member + kAhead];
  const CollectiveRow* row = intake.ranks[next.rank].rows.data() + next.row;
  __builtin_prefetch(row);
  __builtin_prefetch(row - (next.row > 0 ? 1 : 0));
}

}  // namespace firelane::ranks
