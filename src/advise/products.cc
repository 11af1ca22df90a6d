#include "advise/products.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "analyze/device/device_peaks.h"
#include "analyze/ops/op_inputs.h"
#include "analyze/ops/op_tensors.h"

namespace firelane::advise {

using analyze::kNoMaker;
using analyze::kNoValue;
using analyze::TensorGraph;
using analyze::TensorNode;
using analyze::TensorUse;

namespace {

struct ProductName {
  std::string_view name;
  size_t left;  // place of the first factor
};
constexpr std::array<ProductName, 10> kProducts = {{{"aten::mm", 0},
                                                    {"aten::bmm", 0},
                                                    {"aten::mv", 0},
                                                    {"aten::addmm", 1},
                                                    {"aten::addmm_", 1},
                                                    {"aten::_addmm_activation", 1},
                                                    {"aten::baddbmm", 1},
                                                    {"aten::baddbmm_", 1},
                                                    {"aten::addmv", 1},
                                                    {"aten::addmv_", 1}}};

const TensorUse* use_at(const TensorNode& node, size_t place) {
  const auto found = std::find_if(node.uses.begin(), node.uses.end(),
                                  [&](const TensorUse& use) { return use.place == place && !use.in_list; });
  return found == node.uses.end() ? nullptr : &*found;
}

// Below this, what an operator takes is not what it computes.
constexpr int64_t kLongEnoughNs = 20'000;
constexpr double kLaunchNs = 3000;
// What is usual of the makers' peaks, where the trace shows nothing of the kind.
constexpr double kUsualOfPeak = 0.5;
constexpr double kUsualOfBandwidth = 0.75;

}  // namespace

double Product::flops() const { return 2 * result_elements() * static_cast<double>(inner); }

std::optional<Product> product_of(const Model& model, const TensorGraph& graph, uint32_t at) {
  const TensorNode& node = graph.nodes[at];
  const std::string_view name = name_of_node(model, graph, at);
  const auto* const found =
      std::find_if(kProducts.begin(), kProducts.end(), [&](const ProductName& each) { return each.name == name; });
  if (found == kProducts.end()) return {};
  Product product{.node = at, .left = use_at(node, found->left), .right = use_at(node, found->left + 1)};
  if (product.left == nullptr || product.right == nullptr) return {};
  const analyze::Dims& left = product.left->dims;
  const analyze::Dims& right = product.right->dims;
  if (left.size() < 2 || left.size() > 3 || right.empty() || right.size() > left.size()) return {};
  product.batch = left.size() == 3 ? left[0] : 1;
  product.rows = left[left.size() - 2];
  product.inner = left.back();
  product.columns = right.size() == 1 ? 1 : right.back();
  product.adds = found->left == 1;
  if (product.batch <= 0 || product.rows <= 0 || product.inner <= 0 || product.columns <= 0) return {};
  return product;
}

std::string_view name_of_node(const Model& model, const TensorGraph& graph, uint32_t node) {
  return model.text(model.host_slices.name[graph.nodes[node].op]);
}

std::string factors_text(const Product& product) {
  return shape_text(product.left->dims) + " and " + shape_text(product.right->dims);
}

std::vector<uint32_t> forward_readers(const TensorGraph& graph, uint32_t value) {
  std::vector<uint32_t> readers;
  if (value == kNoValue) return readers;
  for (const uint32_t reader : graph.values[value].readers) {
    if (!graph.nodes[reader].in_backward) readers.push_back(reader);
  }
  return readers;
}

uint32_t result_of(const TensorGraph& graph, uint32_t node) {
  return graph.nodes[node].made.size() == 1 ? graph.nodes[node].made[0] : kNoValue;
}

bool writes_all(const TensorGraph& graph, uint32_t at) {
  constexpr double kRounding = 512;  // of the caching allocator
  const uint32_t made = result_of(graph, at);
  if (made == kNoValue || graph.nodes[at].uses.empty()) return false;
  return graph.nodes[at].uses[0].bytes() + kRounding > static_cast<double>(graph.values[made].bytes);
}

uint32_t copied_from(const Model& model, const TensorGraph& graph, uint32_t at) {
  const TensorNode& node = graph.nodes[at];
  if (name_of_node(model, graph, at) != "aten::copy_" || node.uses.size() < 2) return kNoValue;
  const bool is_whole = node.uses[0].elements() == node.uses[1].elements() &&
                        node.uses[1].distinct_elements() == node.uses[1].elements() && writes_all(graph, at);
  return is_whole ? node.uses[1].value : kNoValue;
}

uint32_t scaled_from(const Model& model, const TensorGraph& graph, uint32_t at) {
  if (const uint32_t value = copied_from(model, graph, at); value != kNoValue) return value;
  const TensorNode& node = graph.nodes[at];
  const std::string_view name = name_of_node(model, graph, at);
  const bool scales =
      name == "aten::mul" || name == "aten::mul_" || name == "aten::div" || name == "aten::div_" || name == "aten::neg";
  if (!scales || node.uses.empty()) return kNoValue;
  const bool by_one = std::all_of(node.uses.begin() + 1, node.uses.end(),
                                  [](const TensorUse& use) { return !use.in_list && use.elements() == 1; });
  return by_one ? node.uses[0].value : kNoValue;
}

std::string number_at(const Model& model, Row op, size_t place) {
  const std::vector<std::string> numbers = numbers_of_op(model, op);
  return place < numbers.size() ? numbers[place] : std::string();
}

Rates::Rates(const Context& context, const TensorGraph& graph) {
  const Model& model = context.model;
  const analyze::DevicePeaks* peaks = graph.on_device ? analyze::peaks_of(model, 0) : nullptr;
  double copied = 0;
  for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
    const TensorNode& node = graph.nodes[at];
    if (node.time_ns < kLongEnoughNs) continue;
    const auto ns = static_cast<double>(node.time_ns);
    if (const std::optional<Product> product = product_of(model, graph, at)) {
      double& best = flops_per_ns_[product->left->element_bytes];
      best = std::max(best, product->flops() / ns);
      const double numbers = static_cast<double>(product->left->distinct_elements()) +
                             static_cast<double>(product->right->distinct_elements()) + product->result_elements();
      copied = std::max(copied, numbers * static_cast<double>(product->left->element_bytes) / ns);
    }
    if (name_of_node(model, graph, at) == "aten::copy_" && node.uses.size() > 1) {
      double bytes = 0;
      for (const TensorUse& use : node.uses)
        bytes += static_cast<double>(use.distinct_elements()) * static_cast<double>(use.element_bytes);
      copied = std::max(copied, bytes / ns);
    }
    // Elementwise operators of one input: read, and written.
    const uint32_t result = result_of(graph, at);
    if (node.uses.size() == 1 && result != kNoValue && !node.uses[0].in_list) {
      const double read =
          static_cast<double>(node.uses[0].distinct_elements()) * static_cast<double>(node.uses[0].element_bytes);
      copied = std::max(copied, (read + static_cast<double>(graph.values[result].bytes)) / ns);
    }
  }
  bytes_per_ns_ = copied;
  if (!graph.on_device) {
    // Where no product shows what this CPU reaches: one core does.
    constexpr double kLeastOfCore = 10;
    double& rate = flops_per_ns_[4];
    rate = std::max(rate, kLeastOfCore);
  }
  if (peaks == nullptr) return;
  // Caches make some copies faster than memory is.
  if (peaks->bandwidth_gb_s > 0) bytes_per_ns_ = kUsualOfBandwidth * peaks->bandwidth_gb_s;
  const auto peak = [&](int64_t bytes, double tflops) {
    if (tflops <= 0) return;
    // Products of another shape may reach more than those that are there.
    double& rate = flops_per_ns_[bytes];
    rate = std::max(rate, kUsualOfPeak * tflops * 1e3);
  };
  peak(2, std::max(peaks->bf16_tflops, peaks->half_tflops));
  peak(4, peaks->fp32_tflops);
}

double Rates::time_ns(double flops, double bytes, int64_t element_bytes) const {
  double rate = 0;
  if (const auto found = flops_per_ns_.find(element_bytes); found != flops_per_ns_.end()) {
    rate = found->second;
  } else {
    for (const auto& [size, each] : flops_per_ns_) rate = std::max(rate, each);
  }
  if ((flops > 0 && rate <= 0) || bytes_per_ns_ <= 0) return 0;
  return std::max(flops > 0 ? flops / rate : 0, bytes / bytes_per_ns_) + kLaunchNs;
}

double Rates::product_ns(double batch, double rows, double inner, double columns, int64_t element_bytes) const {
  const double bytes = batch * (rows * inner + inner * columns + rows * columns) * static_cast<double>(element_bytes);
  return time_ns(2 * batch * rows * inner * columns, bytes, element_bytes);
}

void Replaced::add(uint32_t node, double keep_low, double keep_high) {
  const Keep keep{.low = std::clamp(keep_low, 0.0, 1.0), .high = std::clamp(keep_high, 0.0, 1.0)};
  const auto [found, is_new] = keep_.try_emplace(node, keep);
  if (is_new) return;
  found->second.low = std::min(found->second.low, keep.low);
  found->second.high = std::min(found->second.high, keep.high);
}

void Replaced::add_with_backward(uint32_t node, double keep_low, double keep_high) {
  for (const uint32_t each : with_backward({node})) add(each, keep_low, keep_high);
}

void Replaced::add_group(std::vector<uint32_t> nodes, double left_ns) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  const double keep = left_ns / std::max(1.0, static_cast<double>(time_ns(nodes)));
  constexpr double kWorse = 1.4;
  constexpr double kBetter = 0.7;
  for (const uint32_t node : nodes) add(node, kWorse * keep, kBetter * keep);
}

int64_t Replaced::time_ns(const std::vector<uint32_t>& nodes) const {
  int64_t ns = 0;
  for (const uint32_t node : nodes) ns += graph_.nodes[node].time_ns;
  return ns;
}

std::vector<uint32_t> Replaced::with_backward(const std::vector<uint32_t>& nodes) const {
  std::vector<uint32_t> all = nodes;
  for (const uint32_t node : nodes) {
    const auto found = graph_.backward.find(node);
    if (found != graph_.backward.end()) all.insert(all.end(), found->second.begin(), found->second.end());
  }
  return all;
}

void Replaced::fill(Finding& finding) const {
  Evidence evidence(context_);
  if (graph_.on_device) {
    for (Row work = 0; work < graph_.node_of_work.size(); ++work) {
      const auto found = keep_.find(graph_.node_of_work[work]);
      if (found != keep_.end()) evidence.add_device(work, found->second.low, found->second.high);
    }
  }
  std::vector<Row> ops;
  for (const auto& [node, keep] : keep_) {
    const Row op = graph_.nodes[node].op;
    ops.push_back(op);
    if (!graph_.on_device) evidence.add_call(op, keep.low, keep.high);
  }
  if (evidence.empty()) return;
  evidence.fill(finding);
  finding.events = count();
  add_longest(finding, context_.model, ops);
}

}  // namespace firelane::advise
