// Matches what the order of rows left open, with the evidence of all groups and ranks of a machine together. Private to
// ranks/reduce.
//
// Ranks whose clocks are known put their collectives on one time axis. A machine whose clock is not known yet has rows
// of several groups and ranks, and all of them must fall onto that axis under one difference of clocks: what two lanes
// of one group cannot tell apart (ends that lie far apart, few rows), the mean over a machine's ranks and the steps
// between groups often can. A difference is taken when it alone fits as closely as matched ends lie together. Where a
// clock is known, a row belongs to the collective that ends where it does, if no other one lies near.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ranks/reduce/clock.h"
#include "ranks/reduce/match.h"

namespace firelane::ranks {

// A row that may belong to an instance.
struct Entrant {
  Member member;
  uint32_t signature = 0;
};

enum class LaidState : uint8_t { kCertain, kSeveral, kNone };  // one shift fits, several do, none does

// The rows of a group's ranks, laid along each other.
struct Laid {
  uint32_t group = 0;
  std::vector<std::vector<int32_t>> instance;  // by member and row: index in `found`; -1: none
  std::vector<std::vector<Entrant>> found;
  std::vector<LaidState> state;  // by member
  bool complete() const;         // every rank is certain
  bool has_open_rows() const;    // rows without a partner
};

// Finds clocks that `clocks` does not know yet, and adds rows to `open`. `matched` are the instances that are certain,
// those of `open` included.
void match_on_axis(const Intake& intake, const Matches& matched, Clocks& clocks, std::span<Laid> open);

}  // namespace firelane::ranks
