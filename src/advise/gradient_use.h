// Which gradients a backward pass computes for parameters that no optimizer updates.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "advise/context.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"

namespace firelane::advise {

struct Gradients {
  std::set<analyze::Dims> unused;  // shapes of parameters that get a gradient and that no optimizer touches
  // For shapes of which more parameters get a gradient than the optimizer updates: when, in each step, those that are
  // too many are computed.
  std::map<analyze::Dims, std::vector<analyze::Interval>> too_many;
  int64_t count = 0;         // of those parameters, per step
  std::vector<Row> nodes;    // host slices that accumulate them
  std::vector<Row> used;     // those of gradients that the optimizer does use
  bool thrown_away = false;  // their parameters have an optimizer, which reads the gradients of another backward pass
  std::vector<analyze::Interval> passes;  // backward passes, or the steps that they are in; in order

  bool empty() const { return nodes.empty(); }
  // Whether a gradient of this shape that is computed now is for nobody.
  bool is_unused(const analyze::Dims& shape, int64_t time_ns) const;
};

// Which gradients are accumulated for nobody: by the tensors themselves where they were followed (gradient_flow.h),
// else by their shapes: no optimizer has such a parameter, or fewer of them. Which of several of one shape are too
// many, shapes do not tell: those nearest to the loss are taken, as of a discriminator that a generator is trained
// through, where the gradients of activations are needed; unless what is surely used stands nearer to the loss, as a
// head on a body. Nothing when the optimizer's shapes do not match any matrix (it flattens its parameters, or the trace
// has no shapes).
Gradients unused_gradients(const Context& context, const analyze::Phases& phases);

// The steps of the trace; the window where there is no study.
std::vector<analyze::Interval> steps_of(const Context& context);

}  // namespace firelane::advise
