// Why rows that were matched by order have no partner. Private to ranks/reduce.
//
// A row is outside of the others' recordings only when no other rank has one that may be its partner: of its kind, at
// its time as far as clocks are known, and not matched with another row of this rank. Else it is open, and the reason
// is that of the ranks between which it is open.
#pragma once

#include "ranks/reduce/clock.h"
#include "ranks/reduce/islands.h"
#include "ranks/reduce/match.h"

namespace firelane::ranks {

// Counts the rows of `laid` that are in no collective of two ranks or more. n log n in the rows of the group.
void count_refused(const Intake& intake, const Clocks& clocks, const Laid& laid, GroupMatch& out);

}  // namespace firelane::ranks
