// What rules about matmuls share: which operators are matmuls, how fast this machine runs them, and what to say when
// others replace them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advise/context.h"
#include "advise/finding.h"
#include "advise/op_facts.h"
#include "analyze/verdict/tensor_graph.h"

namespace firelane::advise {

// batch times [rows, inner] x [inner, columns].
struct Product {
  uint32_t node = analyze::kNoMaker;
  const analyze::TensorUse* left = nullptr;
  const analyze::TensorUse* right = nullptr;
  int64_t batch = 1;
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  bool adds = false;  // something to the result, as a bias

  double flops() const;
  double result_elements() const {
    return static_cast<double>(batch) * static_cast<double>(rows) * static_cast<double>(columns);
  }
};

// For mm, bmm, mv and their variants that add.
std::optional<Product> product_of(const Model& model, const analyze::TensorGraph& graph, uint32_t node);

std::string_view name_of_node(const Model& model, const analyze::TensorGraph& graph, uint32_t node);

// "[4096, 64] and [64, 512]".
std::string factors_text(const Product& product);

// Readers of a value that are no part of the backward pass.
std::vector<uint32_t> forward_readers(const analyze::TensorGraph& graph, uint32_t value);

// What the operator writes, if it is one value.
uint32_t result_of(const analyze::TensorGraph& graph, uint32_t node);

// Whether an operator that writes in place writes all of that memory.
bool writes_all(const analyze::TensorGraph& graph, uint32_t node);

// Another type or layout of the same numbers: what it reads of, kNoValue of other operators.
uint32_t copied_from(const Model& model, const analyze::TensorGraph& graph, uint32_t node);

// The same, also of an operator that multiplies all numbers with the same one.
uint32_t scaled_from(const Model& model, const analyze::TensorGraph& graph, uint32_t node);

// The text of an operator's number at that place: "2", "[-1]"; empty when it is not recorded.
std::string number_at(const Model& model, Row op, size_t place);

// What this device, or this CPU, reaches: products by the size of their numbers, and copies.
class Rates {
 public:
  Rates(const Context& context, const analyze::TensorGraph& graph);
  // For work of that size, ns; 0: unknown.
  double time_ns(double flops, double bytes, int64_t element_bytes) const;
  double product_ns(double batch, double rows, double inner, double columns, int64_t element_bytes) const;

 private:
  std::map<int64_t, double> flops_per_ns_;  // by element size
  double bytes_per_ns_ = 0;
};

// Operators that others would take the place of: how much of each stays, at worst and at best.
class Replaced {
 public:
  Replaced(const Context& context, const analyze::TensorGraph& graph) : context_(context), graph_(graph) {}

  void add(uint32_t node, double keep_low, double keep_high);
  // Also what differentiates it.
  void add_with_backward(uint32_t node, double keep_low, double keep_high);
  // All of these take `left_ns` together: more at worst, less at best.
  void add_group(std::vector<uint32_t> nodes, double left_ns);

  bool empty() const { return keep_.empty(); }
  int64_t count() const { return static_cast<int64_t>(keep_.size()); }
  int64_t time_ns(const std::vector<uint32_t>& nodes) const;
  // Those and what differentiates them.
  std::vector<uint32_t> with_backward(const std::vector<uint32_t>& nodes) const;
  // Cost, gain and evidence.
  void fill(Finding& finding) const;

 private:
  struct Keep {
    double low = 1;
    double high = 1;
  };
  const Context& context_;
  const analyze::TensorGraph& graph_;
  std::map<uint32_t, Keep> keep_;
};

}  // namespace firelane::advise
