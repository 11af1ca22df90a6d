// Who has to wait for whose data: from the storages that the nodes of an execution trace read and write.
//
// Nodes are taken in the order of their calls. What a node reads was made by the last one that wrote the storage before
// it; what a node overwrites has to wait for everybody who read it since. An output in a storage that is no input is
// new (an allocator gives the same place, and torch the same id, to one tensor after another), so nobody waits for its
// earlier life. An output that shares the storage of an input is a view, unless the schema marks a change in place.
//
// Storages are compared as wholes: two views of different parts of one count as the same data. A leaf without a schema
// (a Triton kernel), unless its caller has one, may change all that it is given; of a node without a schema that calls
// others, only these are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "import/execution/execution_trace.h"

namespace firelane::importer {

inline constexpr size_t kNoNode = SIZE_MAX;

struct NodeDependency {
  size_t node = 0;            // indices of ExecutionTrace::nodes
  size_t producer = kNoNode;  // kNoNode: from before the recording
  DataUse use = DataUse::kRead;
  int64_t bytes = kNoNumber;
};

// Sorted by node; of each pair and use one, with the largest of its tensors.
std::vector<NodeDependency> find_dependencies(const ExecutionTrace& trace);

// By node, the index of its parent; kNoNode of outermost ones. A parent stands before its children.
std::vector<size_t> find_parents(const ExecutionTrace& trace);

}  // namespace firelane::importer
