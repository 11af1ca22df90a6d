// Matmuls with matrices of a known structure: one-hot rows, diagonals, triangles of ones.
//
// A trace has no values, but it shows how a matrix was created: ones scattered into zeros, eye, a vector copied onto a
// diagonal, tril of ones, a comparison with arange.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "advise/kernel_evidence.h"
#include "advise/products.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/ops/op_inputs.h"
#include "analyze/verdict/tensor_graph.h"

namespace firelane::advise {

namespace {

using analyze::Dims;
using analyze::kNoMaker;
using analyze::kNoValue;
using analyze::TensorGraph;
using analyze::TensorNode;
using analyze::TensorUse;

enum class Structure : uint8_t { kZeros, kOnes, kRange, kOneHot, kDiagonal, kTriangle };

struct Structured {
  Structure what = Structure::kZeros;
  int64_t classes = 0;          // of one-hot rows; places of a range
  std::vector<uint32_t> nodes;  // that made it
};

struct OtherWay {
  std::string_view matrix;
  std::string_view text;
  std::string_view code;
};

OtherWay advice_of(Structure what) {
  switch (what) {
    case Structure::kOneHot:
      return {"one-hot rows", "use a lookup, which reads only these rows",
              "rows = F.embedding(ids, table)  # or table[ids], instead of F.one_hot(ids, n).to(table.dtype) @ table"};
    case Structure::kTriangle:
      return {"a triangle of ones", "use a running sum",
              "y = x.cumsum(dim=-2)  # instead of torch.ones(n, n).tril() @ x"};
    default:
      return {"a diagonal matrix", "scale rows or columns by the vector",
              "y = d[:, None] * x  # instead of torch.diag(d) @ x; x * d for x @ torch.diag(d)"};
  }
}

class Structures {
 public:
  Structures(const Model& model, const TensorGraph& graph) : model_(model), graph_(graph) {
    for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
      if (graph.nodes[at].made.empty()) continue;
      std::optional<Structured> made = made_by(at);
      if (made) known_[graph.nodes[at].made.back()] = std::move(*made);
    }
  }
  const Structured* of(uint32_t value) const {
    const auto found = known_.find(value);
    return found == known_.end() ? nullptr : &found->second;
  }

 private:
  const Structured* input(const TensorNode& node, size_t at) const {
    return at < node.uses.size() ? of(node.uses[at].value) : nullptr;
  }
  static Structured with(const Structured& from, uint32_t at) {
    Structured made = from;
    made.nodes.push_back(at);
    return made;
  }

  std::optional<Structured> made_by(uint32_t at) const {
    const TensorNode& node = graph_.nodes[at];
    const std::string_view name = name_of_node(model_, graph_, at);
    const bool zeroes = name == "aten::zero_" && writes_all(graph_, at);
    if (name == "aten::zeros" || name == "aten::zeros_like" || name == "aten::new_zeros" || zeroes)
      return Structured{Structure::kZeros, 0, {at}};
    if (name == "aten::ones" || name == "aten::ones_like" || name == "aten::new_ones")
      return Structured{Structure::kOnes, 0, {at}};
    if (name == "aten::eye") return Structured{Structure::kDiagonal, 0, {at}};
    if (name == "aten::arange") return Structured{Structure::kRange, 0, {at}};
    if (name == "aten::tril" || name == "aten::triu") {
      const Structured* of_ones = input(node, 0);
      if (of_ones == nullptr || of_ones->what != Structure::kOnes) return {};
      Structured made = with(*of_ones, at);
      made.what = Structure::kTriangle;
      return made;
    }
    if (name == "aten::scatter_" || name == "aten::scatter") return scattered(at);
    if (name == "aten::eq") return compared(at);
    if (name == "aten::copy_" && node.uses.size() > 1) {
      if (const std::optional<Structured> diagonal = diagonal_by(at)) return diagonal;
    }
    const uint32_t from = scaled_from(model_, graph_, at);
    const Structured* copied = from == kNoValue ? nullptr : of(from);
    const bool is_matrix = copied != nullptr && copied->what != Structure::kZeros && copied->what != Structure::kRange;
    if (copied != nullptr && (is_matrix || name == "aten::copy_")) return with(*copied, at);
    return {};
  }

  // One number, at one place of each row, into zeros.
  std::optional<Structured> scattered(uint32_t at) const {
    const TensorNode& node = graph_.nodes[at];
    const Structured* zeros = input(node, 0);
    // With a third tensor, each row has a number of its own.
    if (zeros == nullptr || zeros->what != Structure::kZeros || node.uses.size() != 2) return {};
    const Dims& dims = node.uses[0].dims;
    const Dims& index = node.uses[1].dims;
    const std::string dim = number_at(model_, node.op, 1);
    const bool is_last = dim == "-1" || dim == std::to_string(static_cast<int64_t>(dims.size()) - 1);
    if (dims.size() < 2 || index.size() != dims.size() || index.back() != 1 || !is_last) return {};
    Structured made = with(*zeros, at);
    made.what = Structure::kOneHot;
    made.classes = dims.back();
    return made;
  }

  // Each of many with each place of a range.
  std::optional<Structured> compared(uint32_t at) const {
    const TensorNode& node = graph_.nodes[at];
    if (node.uses.size() < 2) return {};
    for (size_t i = 0; i < 2; ++i) {
      const Structured* range = input(node, i);
      if (range == nullptr || range->what != Structure::kRange) continue;
      const Dims& places = node.uses[i].dims;
      const Dims& others = node.uses[1 - i].dims;
      // The places are the last dimension, along which the others do not change.
      if (places.empty() || others.empty() || places.back() < 2 || others.back() != 1) continue;
      if (node.uses[i].elements() != places.back()) continue;
      return Structured{Structure::kOneHot, places.back(), {at}};
    }
    return {};
  }

  // A vector onto the diagonal of zeros.
  std::optional<Structured> diagonal_by(uint32_t at) const {
    const TensorUse& to = graph_.nodes[at].uses[0];
    const Structured* zeros = of(to.value);
    if (zeros == nullptr || zeros->what != Structure::kZeros || to.strides.empty() || to.dims.empty()) return {};
    const int64_t size = to.dims.back();
    if (size < 2 || to.strides.back() < 1 || to.strides.back() - 1 != size) return {};
    Structured made = with(*zeros, at);
    made.what = Structure::kDiagonal;
    return made;
  }

  const Model& model_;
  const TensorGraph& graph_;
  std::unordered_map<uint32_t, Structured> known_;  // by value
};

struct Needless {
  Product product;
  const Structured* matrix = nullptr;
  bool is_left = false;
};

// Whether the product takes along the rows' classes, and not along the rows.
bool fits(const Product& product, const Structured& matrix, bool is_left) {
  const int64_t other = is_left ? product.rows : product.columns;
  switch (matrix.what) {
    case Structure::kOneHot: return product.inner == matrix.classes && other != matrix.classes;
    case Structure::kDiagonal:
    case Structure::kTriangle: return product.inner == other;
    default: return false;
  }
}

std::vector<Finding> find_structured_product(const Context& context) {
  if (context.study == nullptr) return {};
  const auto& graph = context.trace.get<analyze::tensor_graph>();
  if (!graph.is_known()) return {};
  const Structures structures(context.model, graph);
  std::vector<Needless> all;
  for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
    if (graph.nodes[at].in_backward) continue;
    const std::optional<Product> product = product_of(context.model, graph, at);
    if (!product) continue;
    for (const bool is_left : {true, false}) {
      const Structured* matrix = structures.of((is_left ? product->left : product->right)->value);
      if (matrix == nullptr || !fits(*product, *matrix, is_left)) continue;
      all.push_back({*product, matrix, is_left});
      break;
    }
  }
  if (all.empty()) return {};
  const Rates rates(context, graph);
  Replaced replaced(context, graph);
  const Needless* largest = nullptr;
  int64_t largest_ns = 0;
  for (const Needless& each : all) {
    std::vector<uint32_t> nodes = {each.product.node};
    // Who else reads the matrix needs it.
    const std::vector<uint32_t>& made = each.matrix->nodes;
    const uint32_t value = (each.is_left ? each.product.left : each.product.right)->value;
    if (forward_readers(graph, value).size() == 1) nodes.insert(nodes.end(), made.begin(), made.end());
    const std::vector<uint32_t> backward = replaced.with_backward(nodes);
    const auto size = static_cast<double>(each.product.left->element_bytes);
    const TensorUse& other = each.is_left ? *each.product.right : *each.product.left;
    const double one_ns =
        rates.time_ns(0, 2 * size * std::max(each.product.result_elements(), static_cast<double>(other.elements())), 4);
    if (one_ns <= 0) continue;
    const double rounds = backward.size() > nodes.size() ? 2.5 : 1;
    const int64_t taken_ns = replaced.time_ns(backward);
    replaced.add_group(backward, rounds * one_ns);
    if (taken_ns > largest_ns) {
      largest = &each;
      largest_ns = taken_ns;
    }
  }
  if (largest == nullptr) return {};
  const OtherWay advice = advice_of(largest->matrix->what);
  Finding finding{.id = "structured-product",
                  .try_text = std::string(advice.text),
                  .try_code = std::string(advice.code),
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare results and step times",
                  .cause = "structured-product",
                  .precedence = Precedence::kNeedless};
  replaced.fill(finding);
  finding.title = std::string(name_of_node(context.model, graph, largest->product.node)) + " of " +
                  factors_text(largest->product) + " multiplies by " + std::string(advice.matrix) +
                  ": creating it and the matmul take " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> structured_rules() {
  return {
      {"structured-product", "waste", 0.05, true,
       "A matmul with a matrix that is nearly all zeros, or has ones in a known pattern: one-hot rows (a lookup of\n"
       "rows), a diagonal (a scaling of rows or columns), a triangle of ones (a running sum). The matmul does not\n"
       "know this, and multiplies everything.\n\n"
       "Detected by how the matrix was created, in the same step: one_hot, a number scattered into zeros or a\n"
       "comparison with arange; eye, diag and diag_embed; tril and triu of ones. Copies and a scalar factor may\n"
       "follow. Matmuls that sum the rows of each class are not reported: a few large sums are faster that way.\n"
       "Needs a recording that follows tensors and memory (firelane record does). The gain is a replay in which\n"
       "creating the matrix and the matmul take as long as reading and writing the rest.\n\n"
       "What to do: F.embedding or table[ids]; d[:, None] * x; x.cumsum(dim).\n\n"
       "When not: the rows combine several entries (soft labels), which a trace does not show where numbers are\n"
       "written in "
       "place.",
       find_structured_product},
  };
}

}  // namespace firelane::advise
