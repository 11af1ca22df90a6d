// Matmuls that take far less work in another order, or another grouping: chains of matmuls, and matmuls with one matrix
// for a whole batch.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "advise/kernel_evidence.h"
#include "advise/products.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/verdict/tensor_graph.h"

namespace firelane::advise {

namespace {

using analyze::kNoMaker;
using analyze::kNoValue;
using analyze::TensorGraph;
using analyze::TensorUse;

std::string times_text(double factor) {
  constexpr double kWithDigit = 10;
  const std::string text =
      factor < kWithDigit ? std::to_string(factor).substr(0, 3) : std::to_string(std::llround(factor));
  return text + " times";
}

std::string matrix_text(int64_t batch, int64_t rows, int64_t columns) {
  return (batch == 1 ? "" : counted(batch, "matrix", "matrices") + " of ") + std::to_string(rows) + " x " +
         std::to_string(columns);
}

struct Chain {
  Product first;
  Product second;
  std::vector<uint32_t> between;  // that copy or scale its result
  bool is_left = false;           // the first one's result is the second one's left factor
  // Outer sizes, and the inner ones of both products: (outer x shared) x (shared x inner) x (inner x other).
  double least_flops = 0;
};

// The product whose result this factor is, with nobody else who needs it.
std::optional<Chain> chain_of(const Context& context, const TensorGraph& graph, const Product& second, bool is_left) {
  Chain chain{.second = second, .between = {}, .is_left = is_left};
  uint32_t value = (is_left ? second.left : second.right)->value;
  uint32_t reader = second.node;
  constexpr size_t kMostBetween = 4;
  while (true) {
    if (value == kNoValue || forward_readers(graph, value) != std::vector<uint32_t>{reader}) return {};
    const uint32_t maker = graph.values[value].maker;
    if (maker == kNoMaker || graph.nodes[maker].in_backward) return {};
    if (const std::optional<Product> first = product_of(context.model, graph, maker)) {
      chain.first = *first;
      break;
    }
    value = scaled_from(context.model, graph, maker);
    if (chain.between.size() == kMostBetween) return {};
    chain.between.push_back(maker);
    reader = maker;
  }
  const Product& first = chain.first;
  // A bias would have to be multiplied, too.
  if (first.adds || first.batch != second.batch) return {};
  // As it is, or transposed; a reshape between the two may join other dimensions.
  const std::pair taken = is_left ? std::pair(second.rows, second.inner) : std::pair(second.inner, second.columns);
  if (taken != std::pair(first.rows, first.columns) && taken != std::pair(first.columns, first.rows)) return {};
  const auto batch = static_cast<double>(first.batch);
  const auto other = static_cast<double>(is_left ? second.columns : second.rows);
  const auto inner = static_cast<double>(first.inner);
  // Either way round, the factor that shares a dimension with the second product goes first.
  chain.least_flops = 2 * batch * inner * other * static_cast<double>(first.rows + first.columns);
  return chain;
}

std::vector<Finding> find_contraction_order(const Context& context) {
  if (context.study == nullptr) return {};
  const auto& graph = context.trace.get<analyze::tensor_graph>();
  if (!graph.is_known()) return {};
  constexpr double kFarLess = 0.5;
  std::vector<Chain> chains;
  for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
    if (graph.nodes[at].in_backward) continue;
    const std::optional<Product> second = product_of(context.model, graph, at);
    if (!second) continue;
    for (const bool is_left : {true, false}) {
      std::optional<Chain> chain = chain_of(context, graph, *second, is_left);
      if (!chain) continue;
      const double flops = chain->first.flops() + second->flops();
      if (chain->least_flops <= kFarLess * flops) chains.push_back(std::move(*chain));
    }
  }
  if (chains.empty()) return {};
  const Rates rates(context, graph);
  Replaced replaced(context, graph);
  const Chain* largest = nullptr;
  for (const Chain& chain : chains) {
    const Product& first = chain.first;
    const auto batch = static_cast<double>(first.batch);
    const auto other = static_cast<double>(chain.is_left ? chain.second.columns : chain.second.rows);
    const auto inner = static_cast<double>(first.inner);
    const auto outer = static_cast<double>(std::max(first.rows, first.columns));
    const auto contracted = static_cast<double>(std::min(first.rows, first.columns));
    const int64_t bytes = first.left->element_bytes;
    const double one_ns =
        rates.product_ns(batch, inner, contracted, other, bytes) + rates.product_ns(batch, outer, inner, other, bytes);
    if (rates.time_ns(1, 1, bytes) <= 0) continue;
    const std::vector<uint32_t> products = replaced.with_backward({first.node, chain.second.node});
    // Each product is differentiated by two.
    const double rounds = products.size() > 2 ? 3 : 1;
    replaced.add_group(products, rounds * one_ns);
    const double smaller = inner * other / (outer * contracted);
    for (const uint32_t node : replaced.with_backward(chain.between)) replaced.add(node, 1.4 * smaller, smaller);
    if (largest == nullptr || first.flops() > largest->first.flops()) largest = &chain;
  }
  if (largest == nullptr) return {};
  Finding finding{
      .id = "contraction-order",
      .try_text = "add parentheses so that the small matmul comes first: the result is the same but for rounding",
      .try_code = largest->is_left ? "out = a @ (b @ c)  # instead of (a @ b) @ c"
                                   : "out = (a @ b) @ c  # instead of a @ (b @ c)",
      .confidence = Confidence::kMedium,
      .confirm_by = "compare results (they differ by rounding) and step times",
      .cause = "contraction-order",
      .part_of = kFusion,
      .precedence = Precedence::kNeedless};
  replaced.fill(finding);
  const Product& first = largest->first;
  const double flops = first.flops() + largest->second.flops();
  finding.title = "a product makes " + matrix_text(first.batch, first.rows, first.columns) + " of " +
                  factors_text(first) + ", which the next matmul reduces again: in the other order it is " +
                  times_text(flops / largest->least_flops) + " less work; it takes " +
                  short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

// One matrix for many small products.
struct Shared {
  Product product;
  std::vector<uint32_t> copies;  // that write the matrix out, for each
  double times = 1;              // for so many
};

// How often a use holds each of its numbers, by dimensions with stride 0.
double repeats_of(const TensorUse& use) {
  const int64_t distinct = use.distinct_elements();
  return distinct <= 0 ? 1 : static_cast<double>(use.elements()) / static_cast<double>(distinct);
}

// [b, n, k] with the same n x k numbers for all b. Rows or columns of it that are the same are something else.
bool is_shared_in_batch(const TensorUse& factor) {
  if (factor.dims.size() != 3 || factor.strides.size() != 3 || factor.strides[0] != 0) return false;
  const auto differs = [&](size_t dim) { return factor.dims[dim] == 1 || factor.strides[dim] != 0; };
  return differs(1) && differs(2);
}

std::optional<Shared> shared_of(const Context& context, const TensorGraph& graph, const Product& product,
                                const TensorUse& factor) {
  Shared shared{.product = product, .copies = {}};
  if (is_shared_in_batch(factor)) {
    shared.times = static_cast<double>(product.batch);
    return shared;
  }
  if (factor.value == kNoValue) return {};
  const uint32_t maker = graph.values[factor.value].maker;
  if (maker == kNoMaker || name_of_node(context.model, graph, maker) != "aten::copy_") return {};
  const std::vector<TensorUse>& uses = graph.nodes[maker].uses;
  if (uses.size() < 2 || uses[1].dims.size() < 3 || uses[1].strides.empty()) return {};
  // The rows of one matrix that are the same are something else.
  const size_t last = uses[1].dims.size() - 1;
  if (uses[1].strides[last] == 0 || uses[1].strides[last - 1] == 0) return {};
  shared.times = repeats_of(uses[1]);
  shared.copies.push_back(maker);
  if (shared.times <= 1) return {};
  return shared;
}

std::vector<Finding> find_broadcast_operand(const Context& context) {
  if (context.study == nullptr) return {};
  const auto& graph = context.trace.get<analyze::tensor_graph>();
  if (!graph.is_known()) return {};
  std::vector<Shared> all;
  for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
    if (graph.nodes[at].in_backward) continue;
    const std::optional<Product> product = product_of(context.model, graph, at);
    if (!product || product->batch < 2) continue;
    const std::optional<Shared> left = shared_of(context, graph, *product, *product->left);
    const std::optional<Shared> right = shared_of(context, graph, *product, *product->right);
    // If both are the same for the whole batch, there is only one product.
    if (left.has_value() == right.has_value()) continue;
    all.push_back(left ? *left : *right);
  }
  if (all.empty()) return {};
  const Rates rates(context, graph);
  Replaced replaced(context, graph);
  const Shared* largest = nullptr;
  double largest_ns = 0;
  for (const Shared& shared : all) {
    const Product& product = shared.product;
    const bool on_right = is_shared_in_batch(*product.right) ||
                          (!shared.copies.empty() && graph.values[product.right->value].maker == shared.copies[0]);
    const double groups = static_cast<double>(product.batch) / shared.times;
    const auto rows = shared.times * static_cast<double>(on_right ? product.rows : product.columns);
    const auto columns = static_cast<double>(on_right ? product.columns : product.rows);
    const int64_t bytes = product.left->element_bytes;
    const double one_ns = rates.product_ns(groups, rows, static_cast<double>(product.inner), columns, bytes);
    if (rates.time_ns(1, 1, bytes) <= 0) continue;
    std::vector<uint32_t> nodes = shared.copies;
    nodes.push_back(product.node);
    nodes = replaced.with_backward(nodes);
    // The sum of the gradients of all: who reads what the backward pass makes of the product, and adds it up.
    std::vector<uint32_t> sums;
    for (const uint32_t node : nodes) {
      if (!graph.nodes[node].in_backward || !product_of(context.model, graph, node)) continue;
      for (const uint32_t value : graph.nodes[node].made) {
        for (const uint32_t reader : graph.values[value].readers) {
          const bool adds_up = name_of_node(context.model, graph, reader) == "aten::sum" &&
                               static_cast<double>(graph.nodes[reader].uses[0].elements()) >=
                                   shared.times * static_cast<double>(product.inner) * columns;
          const bool is_known = std::find(nodes.begin(), nodes.end(), reader) != nodes.end() ||
                                std::find(sums.begin(), sums.end(), reader) != sums.end();
          if (adds_up && !is_known) sums.push_back(reader);
        }
      }
    }
    nodes.insert(nodes.end(), sums.begin(), sums.end());
    const double rounds = graph.backward.contains(product.node) ? 3 : 1;
    const auto taken_ns = static_cast<double>(replaced.time_ns(nodes));
    constexpr double kWorthIt = 0.6;
    if (rounds * one_ns > kWorthIt * taken_ns) continue;
    replaced.add_group(nodes, rounds * one_ns);
    if (taken_ns > largest_ns) {
      largest = &shared;
      largest_ns = taken_ns;
    }
  }
  if (largest == nullptr) return {};
  const Product& product = largest->product;
  Finding finding{.id = "broadcast-operand",
                  .try_text = "use one matmul of all rows with the matrix: its gradient is then one matmul, too",
                  .try_code = largest->copies.empty()
                                  ? "y = x @ weight  # or x.flatten(0, 1) @ weight; no expand, no bmm"
                                  : "y = torch.einsum(\"bhnk,hkm->bhnm\", x, weight)  # rows of all b at once",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare results and step times",
                  .cause = "broadcast-operand",
                  .part_of = largest->copies.empty() ? "" : kFusion,
                  .precedence = Precedence::kNeedless};
  replaced.fill(finding);
  finding.title = std::string(name_of_node(context.model, graph, product.node)) + " of " + factors_text(product) +
                  " uses the same matrix in " + std::to_string(std::llround(largest->times)) + " products" +
                  (largest->copies.empty() ? "" : ", copied for each") +
                  (graph.backward.contains(product.node) ? ", and a gradient is computed for each of them" : "") +
                  ": " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> product_order_rules() {
  return {
      {"contraction-order", "waste", 0.05, true,
       "Two matmuls in a row, (a b) c, of which the first makes something large that the second reduces again. The\n"
       "result of a (b c) is the same, and where b c is small it takes far less work and memory: attention without\n"
       "a softmax, (q k^T) v, is quadratic in the length, and q (k^T v) is linear.\n\n"
       "This finding covers matmuls whose result is read only by the next matmul, with at most copies and a\n"
       "multiplication by a scalar between them, where the other order needs at most half of the floating-point\n"
       "operations. Needs a recording that follows tensors and memory (firelane record does). The gain is a replay\n"
       "in which these matmuls, and those of the backward pass, take as long as the smaller ones would at the best\n"
       "rate in this trace.\n\n"
       "What to do: add parentheses; torch.linalg.multi_dot chooses the order for matrices, and einsum with\n"
       "opt_einsum for any chain.\n\n"
       "When not: something is applied to the large matrix between the two matmuls (a softmax, a mask).",
       find_contraction_order},
      {"broadcast-operand", "waste", 0.05, true,
       "A batched matmul (bmm) that gets one matrix, expanded over the whole batch: each small matmul reads the\n"
       "whole matrix for a few rows, and in the backward pass each computes its own gradient, and these are then\n"
       "summed. Where the matrix has a batch dimension itself, matmul even copies it for each.\n\n"
       "Detected by an operand with stride 0 along the batch, or one that was copied from such a tensor. Needs a\n"
       "recording that follows tensors and memory, with shapes (firelane record does). The gain is a replay in\n"
       "which these take as long as one matmul of all rows would.\n\n"
       "What to do: x @ weight, which is one matmul of all rows; for several matrices, einsum, or a transpose that\n"
       "groups all rows of one matrix.\n\n"
       "When not: the rows of the batch are not contiguous in memory and would have to be copied.",
       find_broadcast_operand},
  };
}

}  // namespace firelane::advise
