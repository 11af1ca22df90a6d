// Which device work has to wait for which other because of its data: from the dependencies between ops that an
// execution trace gives. Private to analyze/graph*.cc.
//
// Work belongs to the op that launched it. It waits for the work of the ops that made what its op reads, or that still
// read what its op overwrites; of several pieces on a stream, for the last. What pieces of one op, of its callers and
// of those it calls need of each other is not known: these keep their order.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct DataOrder {
  using Pair = std::pair<Row, Row>;
  std::vector<Pair> waits;   // (work, work whose data it needs), sorted; rows of device_slices
  std::vector<Pair> inside;  // (work, work before it of the same call), sorted
  std::vector<bool> known;   // by row of device_slices: what its op reads and writes is known

  bool empty() const { return known.empty(); }
  bool is_known(Row work) const { return !known.empty() && known[work]; }
  std::span<const Pair> waits_of(Row work) const { return of(waits, work); }
  std::span<const Pair> inside_of(Row work) const { return of(inside, work); }

 private:
  static std::span<const Pair> of(const std::vector<Pair>& pairs, Row work);
};

// Empty without an execution trace.
DataOrder data_order(const Model& model);

}  // namespace firelane::analyze
