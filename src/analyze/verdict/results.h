// What operators make, and who reads it before it is given back. Known where the recording follows tensors and memory.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct Reading {
  Row op = kNoRow;
  int64_t bytes = 0;  // of the result, at most
};

// Memory that an operator asked for and that stayed when it was done.
struct Result {
  Row op = kNoRow;
  int64_t bytes = 0;
  bool is_freed = false;          // in the recording: nobody reads it later
  std::vector<Reading> readings;  // in order; those that only look at it in another way are left out
  uint64_t address = 0;
};

// For operators that no other one calls, nodes of the backward pass aside, in the order in which they were made. Empty
// where the recording does not tell, or has parts that no operator shows (compiled ones, CUDA graphs).
std::vector<Result> find_results(const Model& model);

// Regions whose reads and writes no operator shows.
bool hides_data(const Model& model);

}  // namespace firelane::analyze
