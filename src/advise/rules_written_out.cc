// Intermediates that are materialized only to be summed right away: all pairs of two tensors, and all windows of one.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advise/kernel_evidence.h"
#include "advise/op_facts.h"
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

constexpr double kManyTimes = 4;  // as large as what it is made of

// Sizes of the product that does what a broadcast and a sum do.
struct Pairs {
  double batch = 1;
  double rows = 1;
  double columns = 1;
  double inner = 1;
};

struct Broadcast {
  std::vector<uint32_t> nodes;  // that write the pairs, change them and sum them
  bool is_difference = false;
  bool is_both = false;    // whether both are true, counted
  bool is_cosine = false;  // aten::cosine_similarity does it inside
  Pairs pairs;
  int64_t element_bytes = 4;
  Dims result;
  std::string sources;
};

Dims padded(const Dims& dims, size_t size) {
  Dims out(size - std::min(size, dims.size()), 1);
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

// The dimensions that a sum takes together, from 0.
Dims summed_dims(const Model& model, Row op, size_t place, size_t rank) {
  const std::optional<Dims> dims = analyze::parse_int_list(number_at(model, op, place));
  if (!dims) return {};
  Dims out;
  for (const int64_t dim : *dims) out.push_back(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
  return out;
}

// "2", "2.", "2.0"; not "2.5".
bool is_two(std::string_view number) {
  return number.starts_with('2') && number.find_first_not_of(".0", 1) == std::string_view::npos &&
         (number.size() == 1 || number[1] == '.');
}

bool is_square(const Model& model, const TensorGraph& graph, uint32_t node) {
  const std::string_view name = name_of_node(model, graph, node);
  const std::vector<TensorUse>& uses = graph.nodes[node].uses;
  if (name == "aten::square") return true;
  if (name == "aten::mul") return uses.size() > 1 && uses[0].value == uses[1].value && uses[0].dims == uses[1].dims;
  return name == "aten::pow" && is_two(number_at(model, graph.nodes[node].op, 1));
}

std::optional<Broadcast> broadcast_at(const Context& context, const TensorGraph& graph, uint32_t at) {
  const Model& model = context.model;
  const TensorNode& node = graph.nodes[at];
  const std::string_view name = name_of_node(model, graph, at);
  const bool is_difference = name == "aten::sub" || name == "aten::rsub";
  const bool is_both = name == "aten::bitwise_and" || name == "aten::logical_and";  // a product of truth values
  if ((!is_difference && !is_both && name != "aten::mul") || node.uses.size() < 2) return {};
  const TensorUse& a = node.uses[0];
  const TensorUse& b = node.uses[1];
  const size_t rank = std::max(a.dims.size(), b.dims.size());
  Broadcast found{.nodes = {at},
                  .is_difference = is_difference,
                  .is_both = is_both,
                  .element_bytes = a.element_bytes,
                  .result = {}};
  if (is_both) found.element_bytes = sizeof(float);
  // Expanded dimensions are broadcasts, too.
  const auto sizes_of = [&](const TensorUse& use) {
    Dims dims = use.dims;
    for (size_t i = 0; i < use.strides.size() && i < dims.size(); ++i) dims[i] = use.strides[i] == 0 ? 1 : dims[i];
    return padded(dims, rank);
  };
  const Dims left = sizes_of(a);
  const Dims right = sizes_of(b);
  const Dims left_given = padded(a.dims, rank);
  const Dims right_given = padded(b.dims, rank);
  for (size_t i = 0; i < rank; ++i) found.result.push_back(std::max(left_given[i], right_given[i]));
  const double most = std::max(elements_of(left), elements_of(right));
  if (elements_of(found.result) < kManyTimes * most || elements_of(left) <= 1 || elements_of(right) <= 1) return {};
  found.sources = shape_text(a.dims) + " and " + shape_text(b.dims);
  // The one who reads it squares it and sums, or sums.
  uint32_t reader = at;
  bool is_squared = false;
  for (int links = 0; links < 4; ++links) {
    const uint32_t value = result_of(graph, reader);
    const std::vector<uint32_t> readers = forward_readers(graph, value);
    if (readers.size() != 1) return {};
    reader = readers[0];
    const TensorNode& next = graph.nodes[reader];
    if (next.uses.empty() || static_cast<double>(next.uses[0].elements()) != elements_of(found.result)) return {};
    found.nodes.push_back(reader);
    const std::string_view reads = name_of_node(model, graph, reader);
    const bool is_norm = reads == "aten::linalg_vector_norm" && is_two(number_at(model, next.op, 1));
    if (reads == "aten::sum" || reads == "aten::mean" || is_norm) {
      const Dims dims = summed_dims(model, next.op, is_norm ? 2 : 1, rank);
      if (next.uses[0].dims.size() != rank || dims.empty()) return {};
      if (is_difference != (is_squared || is_norm)) return {};
      for (size_t i = 0; i < rank; ++i) {
        const bool is_summed = std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) != dims.end();
        const auto size = static_cast<double>(found.result[i]);
        const bool in_left = left[i] > 1;
        const bool in_right = right[i] > 1;
        // A sum over what only one of them has is taken of that one before.
        if (is_summed && found.result[i] > 1 && !(in_left && in_right)) return {};
        (is_summed ? found.pairs.inner
         : in_left ? (in_right ? found.pairs.batch : found.pairs.rows)
                   : found.pairs.columns) *= size;
      }
      if (found.pairs.inner <= 1 || found.pairs.rows <= 1 || found.pairs.columns <= 1) return {};
      return found;
    }
    if (copied_from(model, graph, reader) != kNoValue) continue;
    if (is_difference && !is_squared && is_square(model, graph, reader)) {
      is_squared = true;
      continue;
    }
    return {};
  }
  return {};
}

// aten::cosine_similarity of [n, 1, d] and [1, m, d] writes both out before it multiplies them.
std::optional<Broadcast> cosine_at(const Context& context, const TensorGraph& graph, Row op) {
  const Model& model = context.model;
  const std::vector<Dims> shapes = shapes_of_op(model, op);
  if (shapes.size() < 2) return {};
  const size_t rank = std::max(shapes[0].size(), shapes[1].size());
  const Dims left = padded(shapes[0], rank);
  const Dims right = padded(shapes[1], rank);
  const int64_t at = number_of_op(model, op, 2).value_or(1);
  const int64_t summed = at < 0 ? at + static_cast<int64_t>(rank) : at;
  Broadcast found{.nodes = {}, .is_cosine = true, .result = {}};
  for (size_t i = 0; i < rank; ++i) {
    found.result.push_back(std::max(left[i], right[i]));
    const auto size = static_cast<double>(found.result[i]);
    (static_cast<int64_t>(i) == summed ? found.pairs.inner
     : left[i] > 1 && right[i] > 1     ? found.pairs.batch
     : left[i] > 1                     ? found.pairs.rows
                                       : found.pairs.columns) *= size;
  }
  const double most = std::max(elements_of(left), elements_of(right));
  if (elements_of(found.result) < kManyTimes * most || found.pairs.rows <= 1 || found.pairs.columns <= 1) return {};
  const HostSlices& host = model.host_slices;
  const auto first = std::partition_point(graph.nodes.begin(), graph.nodes.end(), [&](const TensorNode& each) {
    return host.start_ns[each.op] < host.start_ns[op];
  });
  for (auto node = static_cast<uint32_t>(first - graph.nodes.begin()); node < graph.nodes.size(); ++node) {
    const Row row = graph.nodes[node].op;
    if (host.start_ns[row] >= host.end_ns(op)) break;
    const bool is_inside = host.lane[row] == host.lane[op] && host.end_ns(row) <= host.end_ns(op);
    if (!is_inside || graph.nodes[node].in_backward) continue;
    found.nodes.push_back(node);
    if (!graph.nodes[node].uses.empty()) found.element_bytes = graph.nodes[node].uses[0].element_bytes;
  }
  if (found.nodes.empty()) return {};
  found.sources = shape_text(shapes[0]) + " and " + shape_text(shapes[1]);
  return found;
}

void add_cosines(const Context& context, const TensorGraph& graph, std::vector<Broadcast>& all) {
  const HostSlices& host = context.model.host_slices;
  const StringId name = context.model.strings.find("aten::cosine_similarity");
  if (name == kNoString) return;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.name[row] != name || !context.in_window(host.start_ns[row])) continue;
    if (std::optional<Broadcast> found = cosine_at(context, graph, row)) all.push_back(std::move(*found));
  }
}

std::vector<Finding> find_broadcast_product(const Context& context) {
  if (context.study == nullptr) return {};
  const auto& graph = context.trace.get<analyze::tensor_graph>();
  if (!graph.is_known()) return {};
  std::vector<Broadcast> all;
  for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
    if (graph.nodes[at].in_backward) continue;
    if (std::optional<Broadcast> found = broadcast_at(context, graph, at)) all.push_back(std::move(*found));
  }
  add_cosines(context, graph, all);
  if (all.empty()) return {};
  const Rates rates(context, graph);
  Replaced replaced(context, graph);
  const Broadcast* largest = nullptr;
  for (const Broadcast& each : all) {
    const Pairs& pairs = each.pairs;
    const double product_ns = rates.product_ns(pairs.batch, pairs.rows, pairs.inner, pairs.columns, each.element_bytes);
    if (product_ns <= 0) continue;
    const std::vector<uint32_t> nodes = replaced.with_backward(each.nodes);
    const double rounds = nodes.size() > each.nodes.size() ? 3 : 1;
    // For a distance, the squares of both are added to the product.
    const double passes = each.is_difference ? 4 : 0;
    const double result_bytes = pairs.batch * pairs.rows * pairs.columns * static_cast<double>(each.element_bytes);
    replaced.add_group(nodes, rounds * product_ns + passes * rates.time_ns(0, result_bytes, each.element_bytes));
    if (largest == nullptr || elements_of(each.result) > elements_of(largest->result)) largest = &each;
  }
  if (largest == nullptr) return {};
  Finding finding{
      .id = "broadcast-product",
      .try_text = largest->is_both
                      ? "count pairs with bincount, or with a matmul of zeros and ones, without materializing them"
                  : largest->is_cosine ? "normalize the rows: their matmul gives the same numbers"
                  : largest->is_difference
                      ? "a matmul does it without materializing the pairs: |a - b|^2 is |a|^2 - 2 a b + |b|^2"
                      : "a matmul does it without materializing the pairs",
      .try_code = largest->is_both
                      ? "counts = torch.bincount(a * n + b, minlength=n * n).view(n, n)  # or one_hot(a).T @ one_hot(b)"
                  : largest->is_cosine ? "similarities = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).mT"
                  : largest->is_difference
                      ? "d = a.square().sum(1, keepdim=True) - 2 * a @ b.T + b.square().sum(1)  # or torch.cdist"
                      : "out = a @ b.mT  # instead of (a[:, None] * b[None]).sum(-1); einsum for other dimensions",
      .confidence = Confidence::kMedium,
      .confirm_by = "compare results (near zero, distances lose digits) and step times",
      .cause = "broadcast-product",
      .part_of = kFusion,
      .precedence = Precedence::kNeedless};
  replaced.fill(finding);
  finding.title = std::string(largest->is_both         ? "comparisons"
                              : largest->is_cosine     ? "cosine similarities"
                              : largest->is_difference ? "differences"
                                                       : "products") +
                  " of all pairs of " + largest->sources + " are materialized (" + shape_text(largest->result) +
                  ") and summed: " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

// Windows of a tensor that overlap, copied apart.
struct Windows {
  std::vector<uint32_t> copies;  // that write them out
  std::vector<uint32_t> nodes;   // and the products that read them
  double times = 1;              // as large as what they are windows of
  double bytes = 0;              // of that
  Product product;
};

// Elements of memory between the first and the last one that a view shows.
double extent_of(const TensorUse& use) {
  double extent = 1;
  for (size_t i = 0; i < use.dims.size() && i < use.strides.size(); ++i)
    extent += (static_cast<double>(use.dims[i]) - 1) * static_cast<double>(use.strides[i]);
  return extent;
}

// How often a copy writes each element of what it reads, where it reads windows that overlap; 1 of other operators.
double times_copied(const Model& model, const TensorGraph& graph, uint32_t at, double& bytes) {
  const TensorNode& node = graph.nodes[at];
  const std::string_view name = name_of_node(model, graph, at);
  if (name == "aten::im2col" && !node.uses.empty()) {
    const uint32_t result = result_of(graph, at);
    const double read = node.uses[0].bytes();
    bytes = read;
    if (result != kNoValue && read > 0) return static_cast<double>(graph.values[result].bytes) / read;
    // What it made first is given back for something larger.
    const std::optional<Dims> kernel = analyze::parse_int_list(number_at(model, node.op, 1));
    return kernel ? elements_of(*kernel) : 1;
  }
  if (name != "aten::copy_" || node.uses.size() < 2) return 1;
  const TensorUse& from = node.uses[1];
  const bool has_strides = from.strides.size() == from.dims.size() && !from.dims.empty();
  const bool is_expanded = std::find(from.strides.begin(), from.strides.end(), 0) != from.strides.end();
  if (!has_strides || is_expanded) return 1;
  const double extent = extent_of(from);
  bytes = extent * static_cast<double>(from.element_bytes);
  return extent > 0 ? static_cast<double>(from.elements()) / extent : 1;
}

bool has_shared_factor(const Product& product) {
  const auto is_shared = [](const TensorUse& use) { return use.distinct_elements() < use.elements(); };
  return product.batch == 1 || is_shared(*product.left) || is_shared(*product.right);
}

std::vector<Finding> find_overlapping_windows(const Context& context) {
  if (context.study == nullptr) return {};
  const auto& graph = context.trace.get<analyze::tensor_graph>();
  if (!graph.is_known()) return {};
  const Model& model = context.model;
  constexpr double kOverlap = 1.9;  // windows of half their length apart
  std::vector<Windows> all;
  for (uint32_t at = 0; at < graph.nodes.size(); ++at) {
    if (graph.nodes[at].in_backward) continue;
    Windows windows{.copies = {at}, .nodes = {}};
    windows.times = times_copied(model, graph, at, windows.bytes);
    if (windows.times < kOverlap) continue;
    // Who reads them: products alone, after copies.
    std::vector<uint32_t> todo = {at};
    bool only_products = true;
    bool has_product = false;
    constexpr size_t kMostCopies = 6;
    for (size_t i = 0; i < todo.size() && only_products; ++i) {
      for (const uint32_t value : graph.nodes[todo[i]].made) {
        for (const uint32_t reader : forward_readers(graph, value)) {
          const std::optional<Product> product = product_of(model, graph, reader);
          // Windows with weights of their own, as of attention to neighbours, are no convolution.
          if (product && !has_shared_factor(*product)) {
            only_products = false;
          } else if (product) {
            windows.nodes.push_back(reader);
            windows.product = *product;
            has_product = true;
            // A convolution writes its result in the order of images.
            for (const uint32_t next : forward_readers(graph, result_of(graph, reader))) {
              if (copied_from(model, graph, next) != kNoValue) windows.nodes.push_back(next);
            }
          } else if (copied_from(model, graph, reader) != kNoValue && todo.size() < kMostCopies) {
            todo.push_back(reader);
            windows.copies.push_back(reader);
          } else {
            only_products = false;
          }
        }
      }
    }
    if (!only_products || !has_product) continue;
    windows.nodes.insert(windows.nodes.end(), windows.copies.begin(), windows.copies.end());
    all.push_back(std::move(windows));
  }
  if (all.empty()) return {};
  const Rates rates(context, graph);
  Replaced replaced(context, graph);
  const Windows* largest = nullptr;
  int64_t largest_ns = 0;
  for (const Windows& windows : all) {
    const Product& product = windows.product;
    const int64_t size = product.left->element_bytes;
    // Convolutions of few channels do not reach what products do.
    constexpr double kSlower = 1.5;
    const double one_ns =
        kSlower *
        rates.time_ns(product.flops(), windows.bytes + product.result_elements() * static_cast<double>(size), size);
    if (one_ns <= 0) continue;
    const std::vector<uint32_t> nodes = replaced.with_backward(windows.nodes);
    const double rounds = nodes.size() > windows.nodes.size() ? 3 : 1;
    const int64_t taken_ns = replaced.time_ns(nodes);
    replaced.add_group(nodes, rounds * one_ns);
    if (taken_ns > largest_ns) {
      largest = &windows;
      largest_ns = taken_ns;
    }
  }
  if (largest == nullptr) return {};
  Finding finding{
      .id = "overlapping-windows",
      .try_text = "a convolution reads the windows where they are, and has a fast backward pass",
      .try_code = "y = F.conv2d(x, weight, padding=1)  # instead of F.unfold, or x.unfold(...), and a product",
      .confidence = Confidence::kMedium,
      .confirm_by = "compare results and step times",
      .cause = "overlapping-windows",
      .part_of = kFusion,
      .precedence = Precedence::kNeedless};
  replaced.fill(finding);
  finding.title = "overlapping windows are copied out, " + std::to_string(std::llround(largest->times)) +
                  " times the size of their source, for a matmul of " + factors_text(largest->product) + ": " +
                  short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> written_out_rules() {
  return {
      {"broadcast-product", "waste", 0.05, true,
       "Products, or squared differences, of all pairs from two tensors are materialized by a broadcast, (a[:,\n"
       "None] - b[None]).square().sum(-1), and then summed along a shared dimension. The large tensor is written\n"
       "and read several times, and again in the backward pass; a matmul does the same without it.\n\n"
       "This finding covers F.cosine_similarity(a[:, None], b[None]), mul, the `and` of booleans, and sub with a\n"
       "square, whose result is at least four times as large as both inputs and is read only by a sum or a mean\n"
       "over dimensions that both inputs have. Needs a recording that follows tensors and memory (firelane record\n"
       "does). The gain is a replay in which all of these take as long as the matmul would at the best rate in this\n"
       "trace.\n\n"
       "What to do: a @ b.mT or einsum; distances are |a|^2 - 2 a b + |b|^2, or torch.cdist.\n\n"
       "When not: distances close to zero are needed with full precision.",
       find_broadcast_product},
      {"overlapping-windows", "waste", 0.05, true,
       "A hand-written convolution: overlapping windows of an image or a signal are copied out (F.unfold, x.unfold\n"
       "and reshape) and multiplied by the weights. With 3 x 3 windows the copy is nine times as large as the\n"
       "image; the backward pass writes the same amount, and sums it.\n\n"
       "This finding covers im2col, and copies from views whose elements overlap, where only matmuls read the\n"
       "result. Needs a recording that follows tensors and memory (firelane record does). The gain is a replay in\n"
       "which copies and matmuls take 1.5 times what their floating-point operations need at the best rate in this\n"
       "trace, or their inputs and results at memory bandwidth.\n\n"
       "What to do: nn.Conv1d, nn.Conv2d or F.conv2d with the same weights; use groups for per-channel products.\n\n"
       "When not: each window has its own weights.",
       find_overlapping_windows},
  };
}

}  // namespace firelane::advise
