// Where the data of an op's inputs was made, as far as a recording follows tensors: ops say which storage each input
// lies in (op_details.tensors), and allocations say when its memory was asked for. Views of a tensor share its storage.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

class TensorFlow {
 public:
  explicit TensorFlow(const Model& model);

  // Ops say which tensors they take, and memory was recorded.
  bool is_known() const { return is_known_; }

  struct Input {
    uint64_t storage = 0;
    int64_t made_ns = kNoNumber;  // kNoNumber: before the recording, or by somebody who does not say
  };
  std::vector<Input> inputs_of(Row op) const;

 private:
  const Model& model_;
  bool is_known_ = false;
  std::vector<std::pair<uint64_t, int64_t>> allocations_;  // address and time, sorted
};

}  // namespace firelane::analyze
