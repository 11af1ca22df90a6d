// The time axis that ranks with known clocks put their collectives on, as axis_match.cc and axis_clock.cc look at it.
// Private to ranks/reduce.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "ranks/reduce/axis_match.h"

namespace firelane::ranks {

// When the ranks of one clock were in a collective, by that clock.
struct ClockTimes {
  uint32_t domain = 0;
  double last_start_ns = -INFINITY;
  double first_end_ns = INFINITY;
};

// A collective of a group on the axis.
struct Place {
  double end_ns = 0;
  uint32_t found = 0;  // as in Laid::instance
  uint32_t signature = 0;
  uint32_t members = 0;
  double last_start_ns = -INFINITY;  // on the axis, of members whose clocks are known
  double first_end_ns = INFINITY;
  // The same of single clocks, some of them: between two clocks nothing needs to be known of a third.
  static constexpr uint8_t kMostClocks = 8;
  uint8_t clock_count = 0;
  std::array<ClockTimes, kMostClocks> clocks{};
};

struct OpenRow {
  uint32_t open = 0;  // index of its group
  uint32_t member = 0;
  uint32_t row = 0;         // index in the member's list
  uint32_t first_slot = 0;  // places of the machine's groups are numbered: that of the first one of its group
  uint32_t signature = 0;
  double start_ns = 0;  // by its own clock
  double end_ns = 0;
};

struct Axis {
  const Intake& intake;
  Clocks& clocks;
  std::span<Laid> open;
  std::vector<std::vector<Place>> places;  // by open group, in order of time
  // By open group: when a rank whose clock is known recorded it. What happened then is among the places.
  struct Span {
    double first_ns = 0;
    double last_ns = 0;
  };
  std::vector<std::vector<Span>> covered;
  size_t rows_left = 100'000'000;  // that may be judged: large jobs that repeat evenly stay open then
  double noise_ns = 0;             // how far ends lie from the mean of their collective
  bool noise_known = false;
  bool noise_supposed = false;  // and not measured
  bool noise_between = false;   // it was seen between machines, not only within one
  struct OpenMember {
    uint32_t open = 0;
    uint32_t member = 0;
  };
  std::vector<std::vector<OpenMember>> of_domain;  // in order of `open`: nothing walks over all members for one machine
  std::vector<uint32_t> first_rank;                // by domain

  void find_members();

  uint32_t rank_of(const Laid& laid, size_t member) const { return intake.groups[laid.group].members[member]; }
  uint32_t domain_of(const Laid& laid, size_t member) const { return intake.ranks[rank_of(laid, member)].domain; }
  const GroupRow& group_row(const Laid& laid, size_t member, size_t i) const {
    return intake.groups[laid.group].rows[member][i];
  }
  const CollectiveRow& row_of(const Member& member) const { return intake.ranks[member.rank].rows[member.row]; }
  const CollectiveRow& row_of(const Laid& laid, size_t member, size_t i) const {
    return intake.ranks[rank_of(laid, member)].rows[group_row(laid, member, i).row];
  }
  bool is_known(uint32_t domain) const { return clocks.domains[domain].known && clocks.domains[domain].consistent; }
  double on_axis(uint32_t domain, int64_t time_ns) const {
    return static_cast<double>(time_ns) - clocks.domains[domain].ahead_ns(time_ns);
  }
  bool on_device(const Laid& laid, size_t member) const {
    return intake.ranks[rank_of(laid, member)].part.has_device_work;
  }
  bool compatible(uint32_t a, uint32_t b) const { return ranks::compatible(intake, a, b); }

  // How far a row may lie from its collective.
  double reach_ns() const { return reach_ns(noise_ns); }
  static double reach_ns(double noise_ns);

  // The nearest compatible collective, and how far the next one is from `end_ns`.
  struct Nearest {
    const Place* place = nullptr;
    double distance_ns = INFINITY;
    double next_ns = INFINITY;
  };
  Nearest nearest(const std::vector<Place>& among, uint32_t signature, double end_ns, double within_ns) const;

  // REQUIRES: the clock of the member is known.
  void add_covered(size_t o, size_t member);
  bool is_covered(size_t o, double first_ns, double last_ns) const;

  // The times of a row whose clock is known become those of its collective.
  void add_times(Place& place, uint32_t domain, const CollectiveRow& row) const;

  // The rows of a machine in groups that have collectives on the axis, in order of time.
  std::vector<OpenRow> open_rows(uint32_t domain) const;
};

// Finds the clock of a machine whose rows these are, and puts it into axis.clocks.
bool find_clock(Axis& axis, uint32_t domain, const std::vector<OpenRow>& rows);

}  // namespace firelane::ranks
