// Which operator makes which tensor, and which ones read it: the steps of a program as a graph of data.
//
// Nodes are the operators that do something: aten::linear calls aten::addmm, and is one node, addmm; views are none, as
// they share the memory of what they show. A value is what a piece of memory holds from one write to the next one: an
// operator that writes in place (copy_, scatter_) makes a new value of it. Known where the recording follows tensors
// and memory, and shows all that reads and writes (no compiled parts, no CUDA graphs).
//
// Not known is what a value's shape is: each use has the shape and the strides of the view that the operator got.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/ops/op_inputs.h"
#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::analyze {

inline constexpr uint32_t kNoMaker = UINT32_MAX;
inline constexpr uint32_t kNoValue = UINT32_MAX;

struct TensorUse {
  uint32_t value = kNoValue;  // before the operator ran
  size_t place = 0;           // among the operator's inputs
  bool in_list = false;       // then without a shape
  Dims dims;
  Dims strides;  // empty: as the shape says
  int64_t element_bytes = 0;

  int64_t elements() const;  // 0: too many to count
  // Elements that differ: dimensions with stride 0 count once.
  int64_t distinct_elements() const;
  double bytes() const { return static_cast<double>(elements()) * static_cast<double>(element_bytes); }
};

struct TensorNode {
  Row op = kNoRow;
  bool in_backward = false;
  uint32_t forward = kNoMaker;  // of a node of the backward pass: the one that it differentiates
  std::vector<TensorUse> uses;
  std::vector<uint32_t> made;  // values that are there when it is done
  int64_t time_ns = 0;         // of the device work that it launched; without a device, its own
};

struct TensorValue {
  uint32_t maker = kNoMaker;      // kNoMaker: from before the steps, or not told
  int64_t bytes = 0;              // of its memory; 0: not known
  bool is_freed = false;          // or overwritten: no reader is missing
  std::vector<uint32_t> readers;  // nodes, in order
};

struct TensorGraph {
  std::vector<TensorNode> nodes;  // in order of time
  std::vector<TensorValue> values;
  std::unordered_map<uint32_t, std::vector<uint32_t>> backward;  // of a node: those that differentiate it
  std::vector<uint32_t> node_of_work;                            // by row of device_slices; kNoMaker: of none
  bool on_device = false;

  bool is_known() const { return !nodes.empty(); }
};

// For the analyzed steps.
TensorGraph tensor_graph(const StudiedTrace& trace);

}  // namespace firelane::analyze
