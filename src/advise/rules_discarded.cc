// Results of which only a small part is read.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "advise/products.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/ops/op_inputs.h"
#include "analyze/verdict/tensor_graph.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

using analyze::kNoMaker;
using analyze::kNoValue;
using analyze::TensorGraph;
using analyze::TensorNode;
using analyze::TensorUse;

constexpr double kLittleUsed = 0.25;
// The caching allocator rounds up to 512 bytes: of less than this, what is not read may not be there.
constexpr int64_t kLeastBytes = 16 << 10;

// Operators each of whose numbers is computed by itself: what is not read need not be.
bool computes_each(const Model& model, const TensorGraph& graph, uint32_t node) {
  if (product_of(model, graph, node)) return true;
  const std::string_view name = name_of_node(model, graph, node);
  if (name == "aten::linear" || name == "aten::matmul" || name == "aten::einsum") return true;
  return contains(name, "conv") && !contains(name, "backward");
}

// Elementwise: each number becomes another one, at the same place.
bool maps_each(const Model& model, const TensorGraph& graph, uint32_t node) {
  if (scaled_from(model, graph, node) != kNoValue) return true;
  constexpr std::array<std::string_view, 8> kMaps = {"aten::gelu",    "aten::relu", "aten::clamp_min", "aten::silu",
                                                     "aten::sigmoid", "aten::tanh", "aten::exp",       "aten::clamp"};
  return std::find(kMaps.begin(), kMaps.end(), name_of_node(model, graph, node)) != kMaps.end();
}

bool picks_rows(const Model& model, const TensorGraph& graph, uint32_t node) {
  const std::string_view name = name_of_node(model, graph, node);
  return name == "aten::index" || name == "aten::index_select" || name == "aten::masked_select";
}

class Used {
 public:
  Used(const Model& model, const TensorGraph& graph) : model_(model), graph_(graph) {}

  // The part of a value that is read, all readers taken together; 1 where it is not known.
  double of(uint32_t value, int depth = 0) {
    const analyze::TensorValue& it = graph_.values[value];
    const std::vector<uint32_t> readers = forward_readers(graph_, value);
    constexpr int kMostLinks = 6;
    if (!it.is_freed || it.bytes < kLeastBytes || readers.empty() || depth > kMostLinks) return 1;
    double read = 0;
    for (const uint32_t reader : readers) {
      double most = 0;
      for (const TensorUse& use : graph_.nodes[reader].uses) {
        if (use.value == value) most = std::max(most, read_by(reader, use, depth));
      }
      read += most;
    }
    return std::min(1.0, read);
  }

 private:
  double read_by(uint32_t reader, const TensorUse& use, int depth) {
    const auto bytes = static_cast<double>(graph_.values[use.value].bytes);
    if (use.in_list || use.element_bytes <= 0 || use.elements() <= 0) return 1;
    const double seen = static_cast<double>(use.elements()) * static_cast<double>(use.element_bytes) / bytes;
    // What is changed in place is read by those who come later.
    const std::string_view name = name_of_node(model_, graph_, reader);
    if (name.ends_with('_') && use.place == 0) return 1;
    const uint32_t made = result_of(graph_, reader);
    if (made == kNoValue) return seen;
    const bool is_copied = name == "aten::copy_" && copied_from(model_, graph_, reader) == use.value;
    if (is_copied) return seen * of(made, depth + 1);
    if (use.place != 0) return seen;
    if (picks_rows(model_, graph_, reader))
      return std::min(seen, static_cast<double>(graph_.values[made].bytes) / bytes);
    if (maps_each(model_, graph_, reader)) return seen * of(made, depth + 1);
    return seen;
  }

  const Model& model_;
  const TensorGraph& graph_;
};

std::string inputs_text(const TensorNode& node) {
  std::string text;
  for (const TensorUse& use : node.uses) {
    if (!use.dims.empty()) text += (text.empty() ? "" : " and ") + shape_text(use.dims);
  }
  return text;
}

// What goes over the whole result: its readers, up to those that take the part.
void add_readers(const Model& model, const TensorGraph& graph, uint32_t value, double used, double smaller,
                 Replaced& replaced, int depth = 0) {
  constexpr int kMostLinks = 6;
  if (value == kNoValue || depth > kMostLinks) return;
  for (const uint32_t reader : forward_readers(graph, value)) {
    if (picks_rows(model, graph, reader)) {
      // The same rows are taken of the input, which is as much smaller.
      for (const uint32_t node : replaced.with_backward({reader}))
        replaced.add(node, std::min(1.0, smaller + 0.1), smaller);
    } else if (maps_each(model, graph, reader)) {
      replaced.add_with_backward(reader, std::min(1.0, used + 0.1), used);
      add_readers(model, graph, result_of(graph, reader), used, smaller, replaced, depth + 1);
    }
  }
}

std::vector<Finding> find_discarded(const Context& context) {
  if (context.study == nullptr) return {};
  const auto& graph = context.trace.get<analyze::tensor_graph>();
  if (!graph.is_known()) return {};
  const Model& model = context.model;
  Replaced replaced(context, graph);
  Used used(model, graph);
  uint32_t largest = kNoMaker;
  double largest_used = 0;
  int64_t largest_bytes = 0;
  int64_t count = 0;
  for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
    const TensorNode& node = graph.nodes[at];
    if (node.in_backward || node.made.empty() || !computes_each(model, graph, at)) continue;
    // Casts of inputs are made by the op and stay for others: the result is the last that it made.
    const uint32_t value = node.made.back();
    const double part = used.of(value);
    if (part <= 0 || part > kLittleUsed) continue;
    ++count;
    // A smaller product still reads its weights.
    constexpr double kWeights = 0.1;
    const std::vector<uint32_t> all = replaced.with_backward({at});
    for (const uint32_t each : all) replaced.add(each, std::min(1.0, part + kWeights), part);
    double smaller = part;
    if (const std::optional<Product> product = product_of(model, graph, at))
      smaller = std::min(1.0, static_cast<double>(product->inner) / static_cast<double>(product->columns));
    add_readers(model, graph, value, part, smaller, replaced);
    const int64_t bytes = graph.values[value].bytes;
    if (bytes <= largest_bytes) continue;
    largest = at;
    largest_bytes = bytes;
    largest_used = part;
  }
  if (largest == kNoMaker) return {};
  Finding finding{.id = "discarded-results",
                  .try_text = "take the part that is needed before the matmul, not after it",
                  .try_code = "scores = head(hidden[:, -1])  # instead of head(hidden)[:, -1]; head(hidden[mask])",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare results and step times",
                  .cause = "discarded-results",
                  .precedence = Precedence::kNeedless};
  replaced.fill(finding);
  finding.events = count;
  finding.title = std::string(name_of_node(model, graph, largest)) + " computes " + short_bytes(largest_bytes) +
                  ", of which " + short_percent(largest_used) + " is read (inputs of " +
                  inputs_text(graph.nodes[largest]) + "): " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> discarded_rules() {
  return {
      {"discarded-results", "waste", 0.05, true,
       "A matmul makes a large result, of which only a small part is read before it is freed: the logits at every\n"
       "position of a prompt, where the next token needs only those of the last position, or at all positions of a\n"
       "text of which only some are masked.\n\n"
       "This finding covers linear layers, matmuls and convolutions of the forward pass of whose result (16 KiB or\n"
       "more) at most a\n"
       "quarter is read, by all readers together, also through elementwise operators, and which is freed within the\n"
       "recording. A result that is not read at all does not count. Needs a recording that follows tensors and\n"
       "memory (firelane record does), without compiled parts or CUDA graphs. The gain is a replay in which the\n"
       "matmul, and its backward pass, compute only the part that is read.\n\n"
       "What to do: slice or index the input of the matmul instead of its result.\n\n"
       "When not: something that no operator shows (NumPy on the same memory) reads the rest.",
       find_discarded},
  };
}

}  // namespace firelane::advise
