// Backward passes that run through the graphs of earlier steps: something that lives from step to step was never
// detached, and every step appends its graph to it.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/common/intervals.h"
#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::advise {

struct KeptGraph {
  std::vector<Row>
      nodes;  // of the judged steps: nodes of the backward pass whose forward op ran in an earlier step, in order
  std::vector<analyze::Interval> spans;  // from each of these to the next node, in order of time
  std::vector<LaneId> lanes;             // of the spans
  int64_t steps = 0;                     // judged, with a backward pass
  int64_t passed = 0;                    // earlier steps that a pass goes through, at most
  int64_t more_nodes = 0;                // of a pass, from one step to the next
  bool empty() const { return nodes.empty(); }
};

// Empty where passes go back no further than one step (a loss that is used a step later), or through the same graph
// each time: it has to get longer from step to step.
KeptGraph kept_graph(const StudiedTrace& trace);

}  // namespace firelane::advise
