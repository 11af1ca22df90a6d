// What PyTorch's ExecutionTraceObserver writes, and Chakra's JSON after it: the calls of a program as nodes, each with
// its parent, its inputs and outputs, and the id (rf_id) by which torch.profiler's trace of the same run knows it.
//
//   {"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": [
//     {"id": 9, "name": "aten::relu", "ctrl_deps": 2,
//      "inputs": {"values": [[5, 6, 0, 1024, 4, "cpu"]], "shapes": [[16, 64]], "types": ["Tensor(float)"]},
//      "outputs": {...}, "attrs": [{"name": "rf_id", "type": "uint64", "value": 7}, ...]}, ...]}
//
// Before 1.1 (1.0.x) a node is flat: parent, rf_id, op_schema, inputs, input_shapes, input_types and so on. A tensor is
// [tensor id, storage id, offset, elements, bytes of one, device].
//
// No node has a time, unless a tool has put one in (Chakra's converter: start_time_micros, duration_micros; its trace
// linker: ts, dur).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/model.h"

namespace firelane::importer {

// One tensor that a node reads or gives.
struct NodeTensor {
  int64_t storage = 0;  // what is read and written; ids are used again after a storage was freed
  int64_t bytes = 0;
  bool is_written = false;  // of an input: the schema marks it as changed in place
};

struct ExecutionNode {
  int64_t id = 0;      // in the order of the calls' begins
  int64_t parent = 0;  // 0 or an id that is not there: outermost
  int64_t rf_id = kNoNumber;
  int64_t thread = 0;
  int64_t forward_thread = kNoNumber;
  int64_t sequence = kNoNumber;
  int64_t scope = 0;  // at::RecordScope
  int64_t start_ns = kNoNumber;
  int64_t duration_ns = kNoNumber;
  std::string name;
  std::string schema;
  std::string dims, types, strides, concrete;  // of the inputs, JSON, in the words of torch.profiler's traces
  std::vector<NodeTensor> inputs, outputs;     // each storage once, sorted
  std::vector<int64_t> data_deps;              // Chakra: ids of nodes
};

struct ExecutionTrace {
  std::string format = "PyTorch execution trace";
  std::string schema;
  int64_t pid = kNoNumber;
  std::vector<ExecutionNode> nodes;  // sorted by id
  std::vector<MetadataEntry> metadata;
  LossCounts losses;
  uint64_t content_bytes = 0;
};

// An object with nodes, of which the first names its schema, ids or dependencies.
bool is_execution_trace(std::string_view begin);

// Reads nodes one by one: a file that was cut off gives those before the tear.
Result<ExecutionTrace> parse_execution_trace(std::string text, const std::string& name);

// By id. Each id names one node: the first.
void sort_nodes(ExecutionTrace& trace);

// Nodes of torch itself that stand for a process or a thread, not for a call.
bool is_root_node(const ExecutionNode& node);

}  // namespace firelane::importer
