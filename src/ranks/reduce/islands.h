// Islands: ranks whose clocks are known to each other, and the collectives as they saw them. Private to ranks/reduce.
//
// Every machine is an island at first. Two of them are joined when one difference of their clocks, and no other, makes
// their collectives fall onto each other: shift.h says what that has to prove. What was joined is one island, and knows
// more about the next one. Where traces do not name their hosts, every rank is an island at first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ranks/reduce/clock.h"
#include "ranks/reduce/match.h"
#include "ranks/reduce/places.h"

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
  std::vector<std::vector<int32_t>> instance;  // by member and row: index in `found`; -1: open
  std::vector<std::vector<Entrant>> found;     // some are empty
  std::vector<LaidState> state;                // by member
  Spacing spacing;
};

struct GroupPlaces {
  uint32_t laid = 0;  // index of the group
  int64_t ranks = 0;  // of the group, also those that are not here; 0: not known
  Places places;
};

// How far a clock is ahead of another.
struct ClockLine {
  double ahead_ns = 0;  // at `at_ns` of the clock itself
  double drift = 0;
  double at_ns = 0;
  double ahead(double time_ns) const { return ahead_ns + drift * (time_ns - at_ns); }
  // The other way round.
  ClockLine reversed() const { return {-ahead_ns, -drift, at_ns - ahead_ns}; }
  // Of this clock, ahead of what `base` is ahead of.
  ClockLine on(const ClockLine& base) const {
    return {ahead_ns + base.ahead(at_ns - ahead_ns), drift + base.drift, at_ns};
  }
};

struct Island {
  std::vector<uint32_t> domains;    // none: it was joined to another one
  std::vector<GroupPlaces> groups;  // in order of `laid`, those that other clocks take part in
  size_t size = 0;                  // places
  bool on_device = true;
  bool was_open = false;  // several shifts fitted when it was tried
};
void move_island(Island& island, const ClockLine& line);  // from a clock to the one that it is ahead of

class Islands {
 public:
  // One for each clock that has rows in `laid`, whose rows are laid along each other within each clock. Those that
  // `known` knows are one.
  Islands(const Intake& intake, const Clocks* known, std::span<Laid> laid);

  const Intake& intake() const { return intake_; }
  std::vector<Island>& all() { return islands_; }
  // The island of a clock; UINT32_MAX: it shares nothing with others.
  uint32_t of_domain(uint32_t domain) const { return island_of_[domain]; }

  static bool meet(const Island& a, const Island& b);  // in some group
  // Adds the collectives of `from`, whose times are by the clock of `to`. By group of `from`, the number (Place::found)
  // of what each went to; empty where `to` had nothing of the group.
  std::vector<std::vector<uint32_t>> add_places(Island& to, Island from, const EndNoise& noise) const;

  // `line`: how far the clock of `from` is ahead of that of `to`; `noise`: how far from each other their ends lie.
  void join(uint32_t to, uint32_t from, const ClockLine& line, const EndNoise& noise);

  // As far as that is certain.
  void join_all();

  // Puts what was joined back into `laid`.
  void finish();

 private:
  void build();
  void join_known(const Clocks& known);
  uint32_t root(uint32_t laid, uint32_t found);
  void leave_largest(Laid& laid) const;
  bool grow(uint32_t seed, std::span<const uint32_t> order);

  const Intake& intake_;
  std::span<Laid> laid_;
  std::vector<Island> islands_;
  std::vector<uint32_t> island_of_;             // by domain
  std::vector<std::vector<uint32_t>> parents_;  // by laid and found: what it was merged into; none of one clock
  size_t left_to_judge_ = 0;
};

// What two islands cannot prove between them, several may prove together (together.cc).
void join_together(Islands& islands);

// For traces that do not name their hosts (machines.cc): joins ranks that have one clock, as neighbours do that share a
// machine. Machines of a job have equally many ranks, in order. That ranks agree on what time it is to within
// microseconds, although nothing keeps them from being off by milliseconds, is no accident when enough of them do.
void join_machines(Islands& islands);

}  // namespace firelane::ranks
