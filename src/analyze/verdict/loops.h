// Loops of a program: the same few operators in a row, many times within a step.
//
// Layers of a model repeat, too. What tells a loop over elements, time steps, tables or experts from them: each round
// picks its piece (select, slice, index, embedding), reads a number back, copies from the host, or runs a cell; or all
// rounds run in one call of one Python function, or change tensors in place and do nothing else. Rounds with a
// normalization or convolution, or with attention and weights beside it, are layers, unless each round copies its own
// input to the device, has a backward pass of its own, or goes back through the same weights as the others: then no
// parameter gets its gradient before the last round.
//
// Where a recording follows tensors (ops/tensor_flow.h), what rounds need of each other is known: rounds that go on
// with what the one before made, each with weights of its own, are layers.
//
// Rounds that each work on tensors of their own from before the loop, without weights among them, go through a list: of
// parameters, gradients, state.
//
// Rounds may differ (repeats.h): an image that is mirrored, another that is not. Then each must pick its piece or ask
// for a number, and none has weights.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/common/intervals.h"
#include "analyze/host/host_time.h"
#include "analyze/steps/find_steps.h"
#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::analyze {

struct Loop {
  LaneId lane{};
  std::vector<Row> body;  // ops of the first round, in order; views left out
  int64_t rounds = 0;
  int64_t start_ns = 0;         // of the first round
  int64_t second_start_ns = 0;  // of the second: what comes from here on would not be there
  int64_t end_ns = 0;
  int64_t gathering_start_ns = kNoNumber;  // right before it, at least one view a round was made: a state_dict()
  bool even = true;                        // all rounds call the same operators
  bool reads = false;                      // each round brings a number back to the host
  bool backward = false;                   // of the backward pass of a loop in the same step
  bool passes = false;                     // each round goes forward and backward
  bool chained = false;                    // known: each round needs what the one before it made
  bool items = false;                      // known: each round has tensors of its own, from before the loop: a list
  bool same = false;                       // known: each round works on the same tensors, or on pieces of them
  Row python = kNoRow;                     // the function in which it runs, when recorded
};

// For the analyzed steps, in order of time, at least 8 rounds each. Updates of optimizers and plain copies are left
// out.
std::vector<Loop> find_loops(const Model& model, const HostChain& chain, const StepList& steps);

// For the leading chain.
std::vector<Loop> loops(const StudiedTrace& trace);

}  // namespace firelane::analyze
