// The longest chain of operators each of which needs the data of the one before: how long the work would take at least,
// however many streams and threads ran what does not depend on each other.
//
// An operator's work is the device time of what it launched itself, or, where it launched nothing, its own host time;
// it begins when the data that it reads is there, and is done when those that it calls are. Ranges (record_function)
// have no work of their own. Only operators that an execution trace was joined to count.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct DataChain {
  struct Link {
    Row op = kNoRow;      // host slice
    int64_t work_ns = 0;  // of the operator itself
    int64_t done_ns = 0;  // since the chain's begin
  };
  int64_t ops = 0;           // that have a node in the execution trace
  int64_t unknown_ops = 0;   // of these, whose reads and writes it does not say
  int64_t dependencies = 0;  // between two operators of the trace
  int64_t outside = 0;       // reads of what was made before the recording
  int64_t work_ns = 0;       // of all of them
  int64_t length_ns = 0;     // of the longest chain
  std::vector<Link> links;   // in order; those without work are left out
};

DataChain data_chain(const Model& model);

}  // namespace firelane::analyze
