// Backward passes whose gradients are all unused, and the part of the forward pass that exists only for them.
#pragma once

#include <vector>

#include "advise/gradient_use.h"
#include "analyze/common/intervals.h"
#include "model/model.h"

namespace firelane::advise {

class DeadPasses {
 public:
  DeadPasses(const Model& model, const Gradients& gradients);
  bool holds(Row op) const;

 private:
  const HostSlices& host_;
  std::vector<analyze::Interval> passes_;
};

// `ops`: outermost ones of a forward pass that are not needed. With those between two of them that make no node of the
// graph: counters of batches, casts of what needs no gradient. In order.
std::vector<Row> with_those_between(const Model& model, std::vector<Row> ops);

}  // namespace firelane::advise
