// The time axis that ranks with known clocks put their collectives on, as axis_match.cc and axis_clock.cc look at it.
// Private to ranks/reduce.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "ranks/reduce/axis_match.h"

namespace firelane::ranks {

// A collective of a group on the axis.
struct Place {
  double end_ns = 0;
  uint32_t found = 0;  // index in Laid::found
  uint32_t signature = 0;
  uint32_t members = 0;
};

struct OpenRow {
  uint32_t open = 0;  // index of its group
  uint32_t member = 0;
  uint32_t row = 0;  // index in the member's list
  uint32_t signature = 0;
  double end_ns = 0;  // by its own clock
};

struct Axis {
  const Intake& intake;
  Clocks& clocks;
  std::span<Laid> open;
  std::vector<std::vector<Place>> places;  // by open group, in order of time
  size_t rows_left = 50'000'000;           // that may be judged: large jobs that repeat evenly stay open then
  double noise_ns = 0;                     // how far ends lie from the mean of their collective; 0: not known

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
  double reach_ns() const;

  // The nearest compatible collective, and how far the next one is from `end_ns`.
  struct Nearest {
    const Place* place = nullptr;
    double distance_ns = INFINITY;
    double next_ns = INFINITY;
  };
  Nearest nearest(const std::vector<Place>& among, uint32_t signature, double end_ns, double within_ns) const;

  // The rows of a machine in groups that have collectives on the axis, in order of time.
  std::vector<OpenRow> open_rows(uint32_t domain) const;
};

// Finds the clock of a machine whose rows these are, and puts it into axis.clocks.
bool find_clock(Axis& axis, uint32_t domain, const std::vector<OpenRow>& rows);

}  // namespace firelane::ranks
