// What the rounds of a loop need of each other, where a recording follows tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/ops/tensor_flow.h"
#include "model/model.h"

namespace firelane::analyze {

enum class RoundData : uint8_t {
  kUnknown,
  kApart,    // most of a round works on what was there before the loop, or was made in the round
  kChained,  // most of it goes on with what the round before made: a recurrence
  kLayers,   // the same, and most tensors from before the loop are of one round only: its weights
  kItems,    // each round works on tensors of its own from before the loop, such as one parameter after another, and
             // goes on with nothing but a sum of the rounds before
  kSame,  // all rounds work on the same tensors from before the loop, or pieces of them, and on nothing of each other
};

class RoundsData {
 public:
  explicit RoundsData(const Model& model) : model_(model), flow_(model) {}

  // `starts`: the first op of each round; `last`: an op of the last round. All of one lane.
  RoundData of(const std::vector<Row>& starts, Row last) const;

 private:
  struct Round {
    int64_t ns = 0;
    int64_t chained_ns = 0;
    int64_t chained = 0;        // ops that go on with what the rounds before made
    bool ends_chained = false;  // the last op is one
    bool begins_alone = true;   // the ops that take tensors from before the loop take none of the rounds before
    std::vector<uint64_t> old;  // storages from before the loop, sorted
  };
  Round look_at(Row first, Row end, int64_t loop_start_ns) const;

  const Model& model_;
  TensorFlow flow_;
};

}  // namespace firelane::analyze
