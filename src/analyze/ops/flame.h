// Flame graphs of what threads did: calls as they happened, equal stacks merged, or merged from the leaves up.
//
// A stack is the nesting of host slices on a thread. By stack its frames are Python functions, by op they are ops,
// annotations and runtime calls; what lies between is skipped, and its time counts for the frame around it. By sample
// it is what was sampled beside the recording, in the time that it stands for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/intervals.h"
#include "analyze/ops/stack_tree.h"
#include "model/model.h"

namespace firelane::analyze {

enum class FlameOrder : uint8_t {
  kTime,       // one lane, as it happened; samples are merged as in kLeftHeavy
  kLeftHeavy,  // equal stacks are one; widest first
  kInverted,   // leaves first, their callers above them; widths are self times
};
enum class FlameBy : uint8_t { kStack, kOp, kSample };

struct FlameOptions {
  FlameOrder order = FlameOrder::kLeftHeavy;
  FlameBy by = FlameBy::kStack;
  std::optional<LaneId> lane;  // nothing: all threads; for kTime the one with the most frames
  Interval range;              // slices are clipped to it
  size_t bins = 1000;          // what is narrower than 1/bins of the total is merged with its neighbours: "(n more)"
};

struct FlameNode {
  uint32_t depth = 0;
  int64_t start_ns = 0;  // kTime: of the trace; else from the left edge
  int64_t width_ns = 0;
  int64_t self_ns = 0;
  int64_t count = 0;          // calls
  StringId name = kNoString;  // kNoString with merged > 0: "(n more)"
  int64_t merged = 0;         // nodes that this one stands for
};

struct FlameGraph {
  int64_t total_ns = 0;
  std::vector<FlameNode> nodes;  // parents before children
  bool has_frames = false;       // the trace has frames of that kind at all
};

FlameGraph flame_graph(const Model& model, const FlameOptions& options);

// The stacks behind it, merged and not laid out; `order` and `bins` do not matter.
StackTree flame_tree(const Model& model, const FlameOptions& options);
bool has_frames(const Model& model, FlameBy by);

}  // namespace firelane::analyze
