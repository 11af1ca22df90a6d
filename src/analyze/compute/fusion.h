// Kernels that one kernel could do: neighbours on a stream that work on the same data, one after another.
//
// A chain is a run of pointwise, normalization and reduction kernels, each the next piece of work on its stream, in one
// phase (forward, backward, ...), each reading something of a size that the chain has read before. Traces give no
// addresses, so equal size stands for "the same data"; what a compiler may join it decides by the real data flow.
// Kernels that a compiler made are left out, and so are CUDA graphs' (no op, no shapes).
//
// One kernel in the chain's place reads what comes from outside and writes the result: the first kernel's inputs, half
// of the large inputs that later ones take beside the one from their predecessor, statistics over all rows once more,
// and the last kernel's result. It reaches 70% of the device's bandwidth, as Inductor's do, and takes 2 us at least.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/steps/phases.h"
#include "model/model.h"

namespace firelane::analyze {

struct FusionMember {
  StringId op = kNoString;
  StringId kernel = kNoString;
};

struct FusionChain {
  std::vector<FusionMember> members;  // in order; two or more
  Phase phase = Phase::kNone;
  StringId dims = kNoString;   // of the first op's inputs
  int64_t elements = 0;        // that pass through
  int64_t times = 0;           // how often the chain ran
  int64_t device_ns = 0;       // of all kernels, all times
  int64_t longest_ns = 0;      // of each time's longest kernel, summed: what stays where the device is not known
  int64_t bytes = 0;           // memory traffic of all kernels, all times
  int64_t fused_bytes = 0;     // traffic of one kernel in their place, all times
  int64_t saved_bytes = 0;     // all times
  int64_t saved_launches = 0;  // all times
  int64_t saved_ns = 0;        // device_ns less the time of the traffic that stays
  std::vector<Row> example;    // device slices of the first time
  std::vector<Row> slices;     // device slices of all times, in order: evidence
};

struct FusionTable {
  std::vector<FusionChain> chains;  // most saved time first
  int64_t kernels = 0;              // all kernels of the trace
  int64_t fusible_kernels = 0;      // pointwise, normalization, reduction
  int64_t fusible_ns = 0;
  int64_t chained_kernels = 0;  // in a chain
  int64_t without_shapes = 0;   // fusible, but the trace gives no shapes (or no op)
};

FusionTable fusion_table(const Model& model);

}  // namespace firelane::analyze
