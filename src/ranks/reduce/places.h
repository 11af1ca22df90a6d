// Collectives of a group as some of its ranks saw them, on one clock. Private to ranks/reduce.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "ranks/reduce/rows.h"

namespace firelane::ranks {

struct Place {
  double end_ns = 0;  // mean of its members
  double first_end_ns = INFINITY;
  double first_start_ns = INFINITY;
  double last_start_ns = -INFINITY;
  uint32_t found = 0;  // a number of its own in its group, as in Laid::found
  uint32_t signature = 0;
  uint32_t members = 0;
};

using Places = std::vector<Place>;  // in order of end_ns

// How far the ends of a collective lie apart, standard deviations: of two places as they were compared, and of two
// ranks if each is late by itself. A place of many ranks lies nearer to another such.
struct EndNoise {
  double places_ns = 0;
  double ranks_ns = 0;
};

// How soon collectives of a group follow each other that may be taken for one another: where a row is missing, its
// partner must not go to the next.
struct Spacing {
  double same_ns = INFINITY;  // of one operation and size
  double any_ns = INFINITY;   // of one operation: for rows without arguments
};
Spacing spacing_of(const Intake& intake, const Places& rows_of_rank);

// Adds collectives of other ranks to `places`: each goes to the one that ends where it does, if no other one of its
// kind lies near, else it stands beside them. By other: the number of the place that it went to. `next_found`: numbers
// of those that stand beside, else they keep theirs.
std::vector<uint32_t> merge_places(const Intake& intake, Places& places, const Places& others, const Spacing& spacing,
                                   const EndNoise& noise, uint32_t* next_found = nullptr);

// The nearest one of a kind that ends within `within_ns` of `end_ns`; places.size() if there is none. `from`: where to
// look first, one that is not far.
size_t nearest_place(const Intake& intake, const Places& places, uint32_t signature, double end_ns, double within_ns,
                     size_t from);

}  // namespace firelane::ranks
