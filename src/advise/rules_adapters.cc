// Low-rank adapters (LoRA) that are applied next to the layers they change, although their product could be merged into
// the weights.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/products.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/tensor_graph.h"

namespace firelane::advise {

namespace {

using analyze::kNoMaker;
using analyze::kNoValue;
using analyze::TensorGraph;

constexpr int64_t kThinner = 4;  // than the layer, at least
constexpr double kStaysAtWorst = 0.1;

struct Adapter {
  std::vector<uint32_t>
      nodes;  // both products, what scales between and after them, and the sum with the layer's result
  int64_t rank = 0;
  int64_t width = 0;  // of the layer's result
};

bool is_weight(const TensorGraph& graph, uint32_t value) {
  return value != kNoValue && graph.values[value].maker == kNoMaker;
}

// Up from a value through what copies or scales it, to the product that made it.
std::optional<Product> product_behind(const Model& model, const TensorGraph& graph, uint32_t value,
                                      std::vector<uint32_t>& between) {
  constexpr size_t kMostBetween = 4;
  while (value != kNoValue && graph.values[value].maker != kNoMaker) {
    const uint32_t maker = graph.values[value].maker;
    if (const std::optional<Product> product = product_of(model, graph, maker)) return product;
    if (between.size() == kMostBetween) return {};
    between.push_back(maker);
    value = scaled_from(model, graph, maker);
  }
  return {};
}

// x W + s (x A) B, of which `sum` adds the two; either may come first.
std::optional<Adapter> adapter_at(const Model& model, const TensorGraph& graph, uint32_t sum) {
  const std::string_view name = name_of_node(model, graph, sum);
  const auto& uses = graph.nodes[sum].uses;
  if ((name != "aten::add" && name != "aten::add_") || uses.size() < 2) return {};
  if (uses[0].elements() != uses[1].elements()) return {};
  for (const bool second : {true, false}) {
    std::vector<uint32_t> after;
    std::vector<uint32_t> other;
    const std::optional<Product> widens = product_behind(model, graph, uses[second ? 1 : 0].value, after);
    const std::optional<Product> layer = product_behind(model, graph, uses[second ? 0 : 1].value, other);
    if (!widens || !layer || widens->node == layer->node) continue;
    std::vector<uint32_t> middle;
    const std::optional<Product> narrows = product_behind(model, graph, widens->left->value, middle);
    if (!narrows || narrows->node == layer->node) continue;
    const bool is_thin = widens->inner * kThinner <= std::min(layer->inner, layer->columns);
    const bool is_of_same = narrows->left->value == layer->left->value && narrows->inner == layer->inner &&
                            narrows->columns == widens->inner && widens->columns == layer->columns;
    if (!is_thin || !is_of_same || !is_weight(graph, narrows->right->value) ||
        !is_weight(graph, widens->right->value) || !is_weight(graph, layer->right->value))
      continue;
    Adapter found{.nodes = {narrows->node, widens->node, sum}, .rank = widens->inner, .width = layer->columns};
    found.nodes.insert(found.nodes.end(), middle.begin(), middle.end());
    found.nodes.insert(found.nodes.end(), after.begin(), after.end());
    return found;
  }
  return {};
}

std::vector<Finding> find_unmerged_adapters(const Context& context) {
  if (context.study == nullptr || context.trace.get<analyze::find_phases>().has_backward) return {};
  const auto& graph = context.trace.get<analyze::tensor_graph>();
  if (!graph.is_known()) return {};
  const Model& model = context.model;
  std::set<uint32_t> nodes;
  int64_t count = 0;
  Adapter largest;
  for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
    const std::optional<Adapter> adapter = adapter_at(model, graph, at);
    if (!adapter) continue;
    ++count;
    nodes.insert(adapter->nodes.begin(), adapter->nodes.end());
    if (adapter->width > largest.width) largest = *adapter;
  }
  if (count == 0) return {};
  Evidence evidence(context);
  if (graph.on_device) {
    for (Row work = 0; work < graph.node_of_work.size(); ++work) {
      if (nodes.contains(graph.node_of_work[work])) evidence.add_device(work, 0, 0);
    }
  }
  std::set<Row> ops;
  for (const uint32_t node : nodes) ops.insert(outermost_op(model, graph.nodes[node].op));
  for (const Row op : ops) {
    if (graph.on_device) {
      evidence.add_host(op, kStaysAtWorst);
    } else {
      evidence.add_call(op, kStaysAtWorst, 0);
    }
    evidence.add_way_to(op);
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "adapters-unmerged",
                  .try_text = "merge each adapter into its layer's weights once, before inference",
                  .try_code = "model = model.merge_and_unload()  # peft; by hand: layer.weight += scale * (B @ A)",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "merge, and compare outputs (they differ in the last digits) and step times",
                  .cause = "adapters-unmerged",
                  .part_of = "overhead",
                  .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  finding.events = count;
  finding.title = "adapters of rank " + std::to_string(largest.rank) + " are applied next to " +
                  counted(std::max<int64_t>(1, context.study->per_step(count)), "layer", "layers") +
                  " instead of being merged into their weights: " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> adapters_rules() {
  return {
      {"adapters-unmerged", "waste", 0.03, true,
       "Low-rank adapters (LoRA) learn a small product, s (x A) B, next to a layer x W. For inference that product\n"
       "can be added to the weights once, W + s A B: the layer then costs what it did without the adapter. Kept\n"
       "separate, each adapted layer runs two more matmuls, a scaling and a sum, which for small batches take\n"
       "longer than the layer.\n\n"
       "This finding covers sums of two matmuls of the same input, one of them through a dimension that is at least\n"
       "four times smaller, with weights created before the recording, in programs without a backward pass. Needs a\n"
       "recording that follows tensors and memory (firelane record does). The gain is a replay without these\n"
       "operators.\n\n"
       "What to do: merge_and_unload() in peft, fuse_lora() in diffusers, or by hand.\n\n"
       "When not: requests switch between several adapters, the weights are quantized, or training continues.",
       find_unmerged_adapters},
  };
}

}  // namespace firelane::advise
