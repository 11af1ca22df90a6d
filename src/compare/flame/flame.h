// The differential flame graph of two sides: one tree of both, with the time that each spent below every frame, per
// step.
//
//   const FlameDifference d = flame_difference({&before}, {&after}, {.by = FlameBy::kDevice});
//   d.nodes[0].name, d.nodes[0].before_ns, d.nodes[0].after_ns
//
// Frames are the same when their names and those of all frames above are. What only one side has stays visible: a frame
// is as wide as the average of both sides, which adds up over its children.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/studied_trace.h"

namespace firelane::compare {

enum class FlameBy : uint8_t {
  kDevice,  // time of kernels and copies: module, op, kernel. Without a device: of ops on the host, by module
  kStack,   // time of threads, by Python frames
  kOp,      // time of threads, by operators
};

struct FlameOptions {
  FlameBy by = FlameBy::kDevice;
  double batch_ratio = 1;  // the second side's times are divided by it
  size_t bins = 1000;      // what is narrower than 1/bins of both sides is merged with its neighbours: "(n more)"
};

struct FlameChange {
  uint32_t depth = 0;
  std::string name;       // "" with merged > 0
  int64_t before_ns = 0;  // per step
  int64_t after_ns = 0;
  int64_t merged = 0;  // frames that this one stands for
};

struct FlameDifference {
  int64_t before_ns = 0;
  int64_t after_ns = 0;
  std::vector<FlameChange> nodes;  // a frame, then what is below it; widest first
  std::string note;                // what is shown instead of what was asked for, and why; "" nothing
};

// REQUIRES: at least one trace a side.
FlameDifference flame_difference(std::span<const StudiedTrace* const> before,
                                 std::span<const StudiedTrace* const> after, const FlameOptions& options);

}  // namespace firelane::compare
