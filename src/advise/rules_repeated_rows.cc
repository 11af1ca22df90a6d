// Work on rows that are copies of each other: the same is computed for each of them.
//
// A copy from an expanded tensor, a lookup of far more rows than there are and an upsampled image contain each row
// several times. Operators that process rows independently keep it that way, until one combines the result with another
// tensor. Everything up to there could be done once per row, and its result repeated.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "advise/kernel_evidence.h"
#include "advise/products.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/verdict/tensor_graph.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

using analyze::Dims;
using analyze::kNoMaker;
using analyze::kNoValue;
using analyze::TensorGraph;
using analyze::TensorNode;
using analyze::TensorUse;

constexpr std::array<std::string_view, 16> kEach = {"gelu", "relu",       "clamp_min", "threshold", "silu", "sigmoid",
                                                    "tanh", "leaky_relu", "elu",       "exp",       "sqrt", "square",
                                                    "abs",  "softplus",   "hardswish", "mish"};
constexpr std::array<std::string_view, 4> kJoins = {"add", "sub", "mul", "div"};

std::string_view bare_name(std::string_view name) {
  if (name.starts_with("aten::")) name.remove_prefix(6);
  if (name.size() > 1 && name.ends_with('_')) name.remove_suffix(1);
  return name;
}
bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

enum class Repeats : uint8_t {
  kRows,     // blocks of memory
  kPixels,   // of each channel
  kBetween,  // the same, with values in between: what is linear may come first, and nothing else
};

struct Source {
  uint32_t node = kNoMaker;
  Repeats what = Repeats::kRows;
  double times = 1;
  int64_t blocks = 1;  // in all, of which one in `times` is another one
  int64_t channels = 0;
  bool is_even = true;  // each is there as often as the others
};

class RepeatedRows {
 public:
  RepeatedRows(const Model& model, const TensorGraph& graph, const Source& source)
      : model_(model), graph_(graph), source_(source) {
    const uint32_t made = result_of(graph, source.node);
    if (made == kNoValue) return;
    repeated_.insert(made);
    for (size_t i = 0; i < graph.values[made].readers.size(); ++i) todo_.insert(graph.values[made].readers[i]);
    while (!todo_.empty()) {
      const uint32_t at = *todo_.begin();
      todo_.erase(todo_.begin());
      if (graph.nodes[at].in_backward || seen_.contains(at)) continue;
      seen_.insert(at);
      look_at(at);
    }
    for (const uint32_t value : repeated_) {
      const std::vector<uint32_t> readers = forward_readers(graph, value);
      const bool is_last = readers.empty() || std::any_of(readers.begin(), readers.end(), [&](uint32_t reader) {
                             return !goes_over_.contains(reader);
                           });
      if (is_last && value != made) last_bytes += static_cast<double>(graph.values[value].bytes);
      if (is_last && value == made) reads_source = true;
    }
  }

  std::vector<uint32_t> nodes;     // that go over copies
  std::vector<uint32_t> products;  // among them
  double last_bytes = 0;           // of what would be repeated instead
  bool reads_source = false;       // somebody else needs the repeated rows as they are

 private:
  void look_at(uint32_t at) {
    const TensorNode& node = graph_.nodes[at];
    const bool is_product = keeps_as_product(node, at);
    if (!is_product && (source_.what == Repeats::kBetween ? !is_cast(at) : !keeps_each(node, at))) return;
    nodes.push_back(at);
    goes_over_.insert(at);
    if (is_product) products.push_back(at);
    // Sums of a batch beside the result, as of a normalization, are no rows.
    uint32_t largest = kNoValue;
    for (const uint32_t value : node.made) {
      if (largest == kNoValue || graph_.values[value].bytes > graph_.values[largest].bytes) largest = value;
    }
    if (largest == kNoValue) return;
    repeated_.insert(largest);
    // What is linear may change places with what is in between once.
    if (source_.what == Repeats::kBetween && is_product) return;
    for (const uint32_t reader : graph_.values[largest].readers) todo_.insert(reader);
  }

  bool is_repeated(const TensorUse& use) const { return use.value != kNoValue && repeated_.contains(use.value); }
  bool is_cast(uint32_t at) const { return copied_from(model_, graph_, at) != kNoValue; }

  bool keeps_as_product(const TensorNode& node, uint32_t at) const {
    if (const std::optional<Product> product = product_of(model_, graph_, at)) {
      if (product->batch != 1 || !is_repeated(*product->left) || is_repeated(*product->right)) return false;
      if (product->adds && is_repeated(node.uses[0])) return false;
      return source_.what == Repeats::kRows ? product->rows % source_.blocks == 0 : product->inner == source_.channels;
    }
    const std::string_view name = name_of_node(model_, graph_, at);
    if (!contains(name, "conv") || contains(name, "backward") || node.uses.size() < 2) return false;
    const TensorUse& input = node.uses[0];
    const TensorUse& weight = node.uses[1];
    if (!is_repeated(input) || is_repeated(weight) || input.dims.size() < 3 || weight.dims.size() < 3) return false;
    if (source_.what == Repeats::kRows) return input.dims[0] % source_.blocks == 0;
    return std::all_of(weight.dims.begin() + 2, weight.dims.end(), [](int64_t size) { return size == 1; });
  }

  bool keeps_each(const TensorNode& node, uint32_t at) const {
    if (is_cast(at)) {
      // Into a part of something else, or into an order in which rows are no blocks.
      const uint32_t made = result_of(graph_, at);
      const TensorUse& to = node.uses[0];
      return made != kNoValue && to.bytes() * 2 > static_cast<double>(graph_.values[made].bytes) &&
             (source_.what != Repeats::kRows || (!to.dims.empty() && keeps_blocks(to)));
    }
    const std::string_view name = bare_name(name_of_node(model_, graph_, at));
    if (node.uses.empty() || node.uses[0].in_list) return false;
    if (is_one_of(kEach, name)) return true;
    if (is_one_of(kJoins, name)) {
      return std::all_of(node.uses.begin(), node.uses.end(),
                         [&](const TensorUse& use) { return is_repeated(use) || is_for_each_block(use); });
    }
    if (source_.what != Repeats::kRows) return false;
    if (name == "native_layer_norm" || name == "_softmax") {
      const Dims& dims = node.uses[0].dims;
      return is_repeated(node.uses[0]) && dims.size() > 1 && dims.back() > 0 &&
             node.uses[0].elements() / dims.back() % source_.blocks == 0;
    }
    // Means of a batch are the same without copies only if each row has as many.
    const bool of_batch = (contains(name, "batch_norm") && source_.is_even) || contains(name, "pool");
    if (of_batch && !contains(name, "backward"))
      return is_repeated(node.uses[0]) && !node.uses[0].dims.empty() && node.uses[0].dims[0] % source_.blocks == 0;
    return false;
  }

  // Its leading dimensions make up the blocks.
  bool keeps_blocks(const TensorUse& use) const {
    int64_t blocks = 1;
    for (size_t i = 0; i < use.dims.size() && blocks < source_.blocks; ++i) {
      if (__builtin_mul_overflow(blocks, use.dims[i], &blocks) || blocks < 1) return false;
    }
    return blocks % source_.blocks == 0;
  }
  // The same number, or row, for all of them.
  bool is_for_each_block(const TensorUse& use) const {
    if (use.in_list) return false;
    if (use.elements() == 1) return true;
    return source_.what == Repeats::kRows && use.dims.size() == 1;
  }

  const Model& model_;
  const TensorGraph& graph_;
  const Source& source_;
  std::set<uint32_t> repeated_;  // values
  std::set<uint32_t> todo_;      // in order of time
  std::set<uint32_t> seen_;
  std::set<uint32_t> goes_over_;  // `nodes`
};

// Copies of an expanded tensor, whose last dimension is not expanded.
std::optional<Source> copied_rows(const TensorNode& node) {
  if (node.uses.size() < 2) return {};
  const TensorUse& from = node.uses[1];
  if (from.dims.size() < 2 || from.strides.size() != from.dims.size() || from.strides.back() == 0) return {};
  Source source{.what = Repeats::kRows};
  int64_t blocks = 1;
  for (size_t i = 0; i < from.dims.size(); ++i) {
    if (__builtin_mul_overflow(blocks, from.dims[i], &blocks) || blocks < 1) return {};
    if (from.strides[i] != 0 || from.dims[i] < 2) continue;
    source.times *= static_cast<double>(from.dims[i]);
    source.blocks = blocks;
  }
  return source;
}

// Whether an operator of that name calls it.
bool lies_in(const Model& model, Row op, std::string_view name) {
  const HostSlices& host = model.host_slices;
  for (Row row = host.parent[op]; row != kNoRow && host.kind[row] == HostKind::kOp; row = host.parent[row]) {
    if (name_of_op(model, row) == name) return true;
  }
  return false;
}

// Lookups of more rows than there are.
std::optional<Source> looked_up_rows(const TensorGraph& graph, const TensorNode& node, std::string_view name) {
  const uint32_t made = node.made.size() == 1 ? node.made[0] : kNoValue;
  if (made == kNoValue || node.uses.empty() || node.uses[0].dims.size() < 2 || node.uses[0].in_list) return {};
  const TensorUse& table = node.uses[0];
  const int64_t rows = table.dims[0];
  if (rows < 1 || table.elements() < 1) return {};
  const double row_bytes = table.bytes() / static_cast<double>(rows);
  int64_t taken = 0;
  if (name == "aten::index_select") {
    if (node.uses.size() < 2 || node.uses[1].in_list) return {};
    taken = node.uses[1].elements();
    // Along another dimension, or of a result that was rounded up.
    if (static_cast<double>(graph.values[made].bytes) < static_cast<double>(taken) * row_bytes) return {};
  } else {
    // The allocator rounds up to 512 bytes.
    taken = row_bytes < 1 ? 0 : static_cast<int64_t>(static_cast<double>(graph.values[made].bytes) / row_bytes);
  }
  if (taken / 2 < rows) return {};
  return Source{.what = Repeats::kRows,
                .times = static_cast<double>(taken) / static_cast<double>(rows),
                .blocks = taken,
                .is_even = false};
}

std::optional<Source> source_at(const Model& model, const TensorGraph& graph, uint32_t at) {
  const TensorNode& node = graph.nodes[at];
  const std::string_view name = name_of_node(model, graph, at);
  std::optional<Source> source;
  if (name == "aten::copy_") {
    if (writes_all(graph, at)) source = copied_rows(node);
  } else if (name == "aten::index_select" || name == "aten::index") {
    // Words of a small vocabulary: nobody computes a layer for all words beforehand.
    if (!lies_in(model, node.op, "aten::embedding")) source = looked_up_rows(graph, node, name);
  } else if (name.starts_with("aten::upsample_") && !contains(name, "backward") && !node.uses.empty()) {
    const uint32_t made = result_of(graph, at);
    const TensorUse& image = node.uses[0];
    if (made == kNoValue || image.dims.size() < 3 || image.bytes() < 1) return {};
    source = Source{.what = contains(name, "nearest") ? Repeats::kPixels : Repeats::kBetween,
                    .times = static_cast<double>(graph.values[made].bytes) / image.bytes(),
                    .channels = image.dims[1]};
  }
  constexpr double kSeveral = 1.9;
  if (!source || source->times < kSeveral) return {};
  source->node = at;
  return source;
}

// Sums in the backward pass that belong to no operator of the forward pass, in order, by the number of elements that
// they add up.
std::unordered_map<int64_t, std::vector<uint32_t>> backward_sums(const Model& model, const TensorGraph& graph) {
  std::unordered_map<int64_t, std::vector<uint32_t>> sums;
  for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
    const TensorNode& node = graph.nodes[at];
    if (!node.in_backward || node.forward != kNoMaker || node.uses.empty()) continue;
    if (name_of_node(model, graph, at) == "aten::sum") sums[node.uses[0].elements()].push_back(at);
  }
  return sums;
}

// What adds the gradients of the copies up: expanding shares no node with what differentiates it.
std::vector<uint32_t> sums_of_gradients(const Model& model, const TensorGraph& graph, const Source& source,
                                        const std::unordered_map<int64_t, std::vector<uint32_t>>& backward) {
  std::vector<uint32_t> sums;
  const auto found = graph.backward.find(source.node);
  if (found != graph.backward.end()) sums = found->second;
  if (name_of_node(model, graph, source.node) != "aten::copy_") return sums;
  const auto alike = backward.find(graph.nodes[source.node].uses[1].elements());
  if (alike == backward.end()) return sums;
  const auto next = std::lower_bound(alike->second.begin(), alike->second.end(), source.node);
  if (next != alike->second.end()) sums.push_back(*next);
  return sums;
}

std::string_view words_of(Repeats what) {
  return what == Repeats::kRows ? "rows that are copies of each other" : "an image that was upsampled before";
}

std::vector<Finding> find_repeated_rows(const Context& context) {
  if (context.study == nullptr) return {};
  const auto& graph = context.trace.get<analyze::tensor_graph>();
  if (!graph.is_known()) return {};
  const Model& model = context.model;
  const auto backward = backward_sums(model, graph);
  Replaced replaced(context, graph);
  std::optional<Source> largest;
  uint32_t largest_product = kNoMaker;
  int64_t largest_ns = 0;
  for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
    if (graph.nodes[at].in_backward) continue;
    const std::optional<Source> source = source_at(model, graph, at);
    if (!source) continue;
    const RepeatedRows found(model, graph, *source);
    if (found.products.empty()) continue;
    std::vector<uint32_t> copying = sums_of_gradients(model, graph, *source, backward);
    copying.push_back(source->node);
    const std::vector<uint32_t> nodes = replaced.with_backward(found.nodes);
    const auto copying_ns = static_cast<double>(replaced.time_ns(copying));
    const auto nodes_ns = static_cast<double>(replaced.time_ns(nodes));
    const double made_bytes = static_cast<double>(graph.values[graph.nodes[at].made[0]].bytes);
    const double ratio = found.last_bytes / std::max(1.0, made_bytes) + (found.reads_source ? 1 : 0);
    // What is copied is another size then; more of it has to be made up for.
    const double left_ns = nodes_ns / source->times + std::max(0.0, ratio - 1) * copying_ns;
    if (left_ns >= nodes_ns) continue;
    const double keep = left_ns / nodes_ns;
    // Smaller kernels fill the device less well.
    for (const uint32_t node : nodes) replaced.add(node, std::min(1.0, 1.5 * keep + 0.03), keep);
    if (ratio < 1) {
      for (const uint32_t node : copying) replaced.add(node, std::min(1.0, 1.3 * ratio + 0.05), ratio);
    }
    for (const uint32_t product : found.products) {
      const int64_t ns = replaced.time_ns(replaced.with_backward({product}));
      if (largest && ns <= largest_ns) continue;
      largest = source;
      largest_product = product;
      largest_ns = ns;
    }
  }
  if (!largest || replaced.empty()) return {};
  const bool is_rows = largest->what == Repeats::kRows;
  Finding finding{
      .id = "repeated-rows",
      .try_text = is_rows ? "do it once per row, and repeat the result: each row is processed independently"
                          : "upsample the result instead: a 1 x 1 convolution gives the same before and after",
      .try_code = is_rows
                      ? "h = encoder(x).repeat_interleave(n, dim=0)  # instead of encoder(x.repeat_interleave(n, 0))"
                      : "y = F.interpolate(conv1x1(x), size=size)  # instead of conv1x1(F.interpolate(x, size=size))",
      .confidence = Confidence::kMedium,
      .confirm_by = "compare results and step times",
      .cause = "repeated-rows",
      .part_of = kFusion,
      .precedence = Precedence::kNeedless};
  replaced.fill(finding);
  const std::string factor = std::to_string(largest->times + 0.05);
  finding.title =
      std::string(name_of_node(model, graph, largest_product)) + " of " +
      shape_text(graph.nodes[largest_product].uses[0].dims.size() > 1 ? graph.nodes[largest_product].uses[0].dims
                                                                      : graph.nodes[largest_product].uses[1].dims) +
      " works on " + std::string(words_of(largest->what)) + ", each " +
      factor.substr(0, factor.find('.') + (largest->times < 10 ? 2 : 0)) + " times by " +
      std::string(name_of_node(model, graph, largest->node)) + "; with what follows on these, " +
      short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> repeated_rows_rules() {
  return {
      {"repeated-rows", "waste", 0.05, true,
       "Rows are repeated (repeat, repeat_interleave, expand and reshape, a lookup of more rows than there are\n"
       "that is no embedding), or\n"
       "an image is upsampled (F.interpolate), and matmuls and what follows them compute the same for each copy.\n"
       "Each row is processed independently, so the result can be repeated instead.\n\n"
       "From the operator that repeats, matmuls with weights, convolutions (1 x 1 for upsampled images),\n"
       "elementwise operators and normalizations are followed, until another tensor is combined with the result;\n"
       "interpolation between pixels can only be swapped with the next matmul. Needs a recording that follows\n"
       "tensors and memory (firelane record does). The gain is a replay in which these, forward and backward, take\n"
       "time in proportion to the rows before repeating, and the copy in proportion to the size of the result.\n\n"
       "What to do: encode first, then repeat; classify first, then upsample.\n\n"
       "When not: randomness that should differ between the copies (dropout) is applied in between.",
       find_repeated_rows},
  };
}

}  // namespace firelane::advise
