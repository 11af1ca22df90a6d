// Work that nobody needs: gradients that are never used, attention over positions that a mask takes out.
#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/device/kernel_traits.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

namespace {

bool mentions(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

// ---- Gradients ----

// Of an op's time: what making a node of the graph, keeping its inputs and freeing both take. The nodes are freed
// outside of ops, so this is more than the op itself would save. Without a device the op also computes, which stays.
constexpr double kKeepLow = 0.88;
constexpr double kKeepHigh = 0.65;
constexpr double kCpuKeepLow = 0.5;
constexpr double kCpuKeepHigh = 0.3;
constexpr double kCallNs = 20'000;   // of an op on the CPU, the call itself takes at most
constexpr int64_t kLeastNodes = 10;  // per step: fewer may be one stray op

// A forward pass that builds the graph, in a program that never goes back through it. Every node takes a sequence
// number, so they rise from op to op where a graph is built.
std::vector<Finding> find_graph_without_backward(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  Evidence evidence(context);
  int64_t nodes = 0;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    int64_t last = -1;  // sequence number
    Row op = kNoRow;    // outermost, with that number
    for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
      if (!is_outermost_op(host, row) || !context.in_window(host.start_ns[row])) continue;
      const Row detail = model.op_detail(row);
      const int64_t number = detail == kNoRow ? kNoNumber : model.op_details.sequence_number[detail];
      const bool builds = number != kNoNumber && number >= 0;
      if (op != kNoRow && builds && number > last) {
        nodes += number - last;
        const double call =
            context.has_device_work ? 1 : std::min(1.0, kCallNs / static_cast<double>(host.duration_ns[op] + 1));
        evidence.add_call(op, 1 - call * (1 - (context.has_device_work ? kKeepLow : kCpuKeepLow)),
                          1 - call * (1 - (context.has_device_work ? kKeepHigh : kCpuKeepHigh)));
      }
      op = builds ? row : kNoRow;
      if (builds) last = number;
    }
  }
  if (evidence.empty() || nodes < kLeastNodes * context.step_count) return {};
  Finding finding{
      .id = "unused-gradients",
      .try_text = "turn gradients off where nothing is trained: the graph, and the activations it keeps, go",
      .try_code = "with torch.inference_mode(): ...",
      .confidence = Confidence::kMedium,
      .confirm_by = "record a whole step: a backward outside of the recording would need this graph",
      .part_of = "overhead",
      .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  finding.title = "the forward pass builds an autograd graph (" +
                  counted(nodes / std::max<int64_t>(1, context.step_count), "node", "nodes") +
                  " a step), but no backward ever runs";
  return {finding};
}

// The innermost lists of numbers in the text: the shapes of all tensors, those in lists too.
void add_shapes(std::string_view json, std::set<analyze::Dims>& out) {
  for (size_t open = json.find('['); open != std::string_view::npos; open = json.find('[', open + 1)) {
    const size_t next = json.find_first_of("[]", open + 1);
    if (next == std::string_view::npos || json[next] != ']') continue;
    const std::vector<analyze::Dims> dims =
        analyze::parse_input_dims("[" + std::string(json.substr(open, next - open + 1)) + "]");
    if (!dims.empty() && !dims.front().empty()) out.insert(dims.front());
  }
}

std::string_view dims_of(const Model& model, Row op) {
  const Row detail = model.op_detail(op);
  if (detail == kNoRow || model.op_details.input_dims[detail] == kNoString) return {};
  return model.text(model.op_details.input_dims[detail]);
}

constexpr double kNodeKeep = 0.3;  // at worst, of the host's time for a node that would not be there

struct Gradients {
  std::set<analyze::Dims> unused;  // shapes of parameters that get a gradient and that no optimizer touches
  int64_t count = 0;               // of those parameters, per step
  std::vector<Row> nodes;          // host slices that accumulate them
  std::vector<Row> used;           // those of gradients that the optimizer does use
};

// Which gradients are accumulated for nobody, by their shapes. Nothing when the optimizer's shapes do not match any
// matrix (it flattens its parameters, or the trace has no shapes).
Gradients unused_gradients(const Context& context, const analyze::Phases& phases) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::set<analyze::Dims> updated;
  std::vector<std::pair<analyze::Dims, Row>> accumulated;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    if (phases.host[row] == analyze::Phase::kOptimizer) add_shapes(dims_of(model, row), updated);
    const Row parent = host.parent[row];
    const bool is_child = parent != kNoRow && mentions(model.text(host.name[parent]), "AccumulateGrad");
    if (!is_child || mentions(model.text(host.name[row]), "AccumulateGrad")) continue;
    const std::vector<analyze::Dims> dims = analyze::parse_input_dims(dims_of(model, row));
    if (!dims.empty() && !dims.front().empty()) accumulated.emplace_back(dims.front(), row);
  }
  Gradients out;
  bool matches = false;
  for (const auto& [shape, row] : accumulated) {
    matches = matches || (shape.size() > 1 && updated.contains(shape));
    if (updated.contains(shape)) {
      out.used.push_back(row);
      continue;
    }
    out.unused.insert(shape);
    ++out.count;
    Row node = host.parent[row];
    while (host.parent[node] != kNoRow && mentions(model.text(host.name[host.parent[node]]), "AccumulateGrad")) {
      node = host.parent[node];
    }
    out.nodes.push_back(node);
  }
  if (!matches) return {};
  out.count /= std::max<int64_t>(1, context.step_count);
  return out;
}

// Whether the op computes such a gradient, by the shape of its result.
bool computes(const Model& model, Row op, std::string_view kernel, const std::set<analyze::Dims>& shapes) {
  const std::string_view name = model.text(model.host_slices.name[op]);
  const std::vector<analyze::Dims> dims = analyze::parse_input_dims(dims_of(model, op));
  const auto is_one = [&](int64_t rows, int64_t columns) {
    return shapes.contains({rows, columns}) || shapes.contains({columns, rows});
  };
  if (name == "aten::mm" && dims.size() >= 2 && dims[0].size() == 2 && dims[1].size() == 2) {
    return is_one(dims[0][0], dims[1][1]);
  }
  if (name == "aten::copy_" && !dims.empty()) {
    return dims[0].size() == 2 ? is_one(dims[0][0], dims[0][1]) : shapes.contains(dims[0]);
  }
  if (name == "aten::sum" && !dims.empty() && dims[0].size() > 1) return shapes.contains({dims[0].back()});
  if (name == "aten::convolution_backward" && dims.size() > 2) {
    return mentions(kernel, "wgrad") && shapes.contains(dims[2]);
  }
  return false;
}

// The node of the graph that goes with the op, where that does nothing else (a cast back to the parameter's type); else
// the op.
Row node_of(const Model& model, Row op) {
  const HostSlices& host = model.host_slices;
  Row top = op;
  while (host.parent[top] != kNoRow && host.kind[host.parent[top]] == HostKind::kOp) top = host.parent[top];
  return mentions(model.text(host.name[top]), "ToCopyBackward") ? top : op;
}

// A backward pass goes from the loss to the first layers: once it has the last gradient that is used, all that follows
// in the same step is for nobody, gradients of activations too.
class NeedlessEnd {
 public:
  NeedlessEnd(const Context& context, const Gradients& gradients) : host_(context.model.host_slices) {
    std::vector<analyze::Interval> steps;
    if (context.study != nullptr) {
      for (const analyze::FoundStep& step : context.study->steps.steps) steps.push_back({step.start_ns, step.end_ns});
    } else {
      steps.push_back(context.window);
    }
    for (const analyze::Interval& step : steps) {
      End end{.step_end_ns = step.end_ns};
      for (const Row row : gradients.used) {
        if (host_.start_ns[row] < step.start_ns || host_.start_ns[row] >= step.end_ns) continue;
        end.last_used_ns = std::max(end.last_used_ns, host_.end_ns(row));
        end.lane = host_.lane[row];
      }
      if (end.last_used_ns >= 0) ends_.push_back(end);
    }
  }
  bool holds(Row op) const {
    const auto end = std::partition_point(ends_.begin(), ends_.end(),
                                          [&](const End& each) { return each.step_end_ns <= host_.start_ns[op]; });
    return end != ends_.end() && host_.lane[op] == end->lane && host_.start_ns[op] >= end->last_used_ns;
  }

 private:
  struct End {
    int64_t step_end_ns = 0;
    int64_t last_used_ns = -1;
    LaneId lane{};
  };
  const HostSlices& host_;
  std::vector<End> ends_;
};

// A part of the model whose parameters nobody updates (a teacher, a frozen copy): all of its nodes are for nobody, also
// those that only lead from one weight to the next. Nodes have rising numbers in the order of the forward pass, so that
// a part is a range of them. Shapes may be those of other, updated parameters: few such are taken for its own.
class UnusedPart {
 public:
  UnusedPart(const Context& context, const Gradients& gradients) : model_(context.model) {
    if (context.study == nullptr) return;
    for (const analyze::FoundStep& step : context.study->steps.steps) {
      std::vector<Weight> weights;
      const auto add = [&](const std::vector<Row>& rows, bool unused) {
        for (const Row row : rows) {
          const int64_t start_ns = model_.host_slices.start_ns[row];
          if (start_ns < step.start_ns || start_ns >= step.end_ns) continue;
          const int64_t number = number_before(row);
          if (number >= 0) weights.push_back({number, unused});
        }
      };
      add(gradients.nodes, true);
      add(gradients.used, false);
      const Numbers best = largest(std::move(weights));
      if (best.low >= 0 && !goes_on(step, best.low)) steps_.push_back({step.start_ns, step.end_ns, best});
    }
  }

  bool holds(Row op) const {
    if (steps_.empty()) return false;
    const int64_t start_ns = model_.host_slices.start_ns[op];
    const auto step =
        std::partition_point(steps_.begin(), steps_.end(), [&](const Step& each) { return each.end_ns <= start_ns; });
    if (step == steps_.end() || start_ns < step->start_ns) return false;
    Row node = outermost(op);
    int64_t number = number_of(node);
    if (number < 0) number = number_before(node);  // hands over a gradient
    return number >= step->numbers.low && number <= step->numbers.high;
  }

 private:
  struct Weight {
    int64_t number = 0;
    bool unused = false;
  };
  struct Numbers {
    int64_t low = -1;
    int64_t high = -1;
  };
  struct Step {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    Numbers numbers;
  };

  // The stretch of weights in which the unused ones outweigh the others most.
  static Numbers largest(std::vector<Weight> weights) {
    constexpr int64_t kAgainst = 2;  // unused ones that one used weight outweighs
    constexpr int64_t kLeastWeights = 4;
    std::sort(weights.begin(), weights.end(), [](const Weight& a, const Weight& b) { return a.number < b.number; });
    Numbers best;
    int64_t best_sum = kLeastWeights - 1;
    int64_t sum = 0;
    int64_t low = -1;
    for (const Weight& weight : weights) {
      if (sum == 0) low = weight.number;
      sum = std::max<int64_t>(0, sum + (weight.unused ? 1 : -kAgainst));
      if (sum <= best_sum) continue;
      best_sum = sum;
      best = {low, weight.number};
    }
    return best;
  }

  // Whether the part's first weight also hands a gradient to what comes before it: then others need its nodes.
  bool goes_on(const analyze::FoundStep& step, int64_t lowest) const {
    constexpr int64_t kNodesOfLayer = 4;  // a product, and what casts and transposes its weight
    const HostSlices& host = model_.host_slices;
    int products = 0;  // of a layer's backward: one for its weight, one for its input
    for (size_t lane = 0; lane < model_.lanes.size(); ++lane) {
      const auto starts = host.start_ns.begin();
      const auto first =
          std::lower_bound(starts + model_.lanes.host_begin[lane], starts + model_.lanes.host_end[lane], step.start_ns);
      for (auto row = static_cast<Row>(first - starts); row < model_.lanes.host_end[lane]; ++row) {
        if (host.start_ns[row] >= step.end_ns) break;
        const std::string_view name = model_.text(host.name[row]);
        if (name != "aten::mm" && name != "aten::bmm") continue;
        const Row node = outermost(row);
        const int64_t number = number_of(node);
        if (!mentions(model_.text(host.name[node]), "evaluate_function")) continue;
        products += number >= lowest && number <= lowest + kNodesOfLayer ? 1 : 0;
      }
    }
    return products > 1;
  }

  Row outermost(Row op) const {
    const HostSlices& host = model_.host_slices;
    while (host.parent[op] != kNoRow && host.kind[host.parent[op]] == HostKind::kOp) op = host.parent[op];
    return op;
  }
  int64_t number_of(Row node) const {
    const Row detail = model_.op_detail(node);
    const int64_t number = detail == kNoRow ? kNoNumber : model_.op_details.sequence_number[detail];
    return number == kNoNumber ? -1 : number;
  }
  // Of the last node with a number before this one on its thread: whose gradient it hands over.
  int64_t number_before(Row row) const {
    constexpr int kMostRows = 200;
    const HostSlices& host = model_.host_slices;
    Row at = outermost(row);
    for (int i = 0; i < kMostRows && at > model_.lanes.host_begin[static_cast<size_t>(host.lane[row])]; ++i) {
      --at;
      if (is_outermost_op(host, at) && number_of(at) >= 0) return number_of(at);
    }
    return -1;
  }

  const Model& model_;
  std::vector<Step> steps_;
};

std::vector<Finding> find_unused_gradients(const Context& context) {
  const auto& phases = context.trace.get<analyze::find_phases>();
  if (!phases.has_backward) return find_graph_without_backward(context);
  const Gradients gradients = unused_gradients(context, phases);
  if (gradients.unused.empty()) return {};
  const Model& model = context.model;
  const NeedlessEnd last(context, gradients);
  const UnusedPart part(context, gradients);
  const auto is_needless = [&](Row op) { return last.holds(op) || part.holds(op); };
  Evidence evidence(context);
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row op = model.device_slices.op[row];
    if (model.device_slices.kind[row] != DeviceKind::kKernel || op == kNoRow) continue;
    if (phases.host[op] != analyze::Phase::kBackward) continue;
    const bool needless = is_needless(op);
    if (!needless && !computes(model, op, model.text(model.device_slices.name[row]), gradients.unused)) continue;
    evidence.add_device(row, 0, 0);
    if (!needless) evidence.add_host(node_of(model, op), kNodeKeep);
  }
  for (Row op = 0; op < model.host_slices.size(); ++op) {
    if (!is_outermost_op(model.host_slices, op) || phases.host[op] != analyze::Phase::kBackward) continue;
    if (!is_needless(op)) continue;
    if (context.has_device_work) {
      evidence.add_host(op, kNodeKeep);
    } else {
      evidence.add_call(op, 0.1, 0);
    }
  }
  for (const Row node : gradients.nodes) {
    if (!is_needless(node)) evidence.add_host(node, kNodeKeep);
  }
  if (!context.has_device_work) {
    for (Row op = 0; op < model.host_slices.size(); ++op) {
      if (model.host_slices.kind[op] != HostKind::kOp || phases.host[op] != analyze::Phase::kBackward) continue;
      if (!is_needless(op) && computes(model, op, "wgrad", gradients.unused)) evidence.add_call(op, 0.1, 0);
    }
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "unused-gradients",
                  .try_text = "freeze what is not trained: the backward pass then leaves out its gradients",
                  .try_code = "base_model.requires_grad_(False)",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare the parameters that have .grad with those of the optimizer",
                  .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  finding.title = "gradients of " + counted(gradients.count, "parameter", "parameters") +
                  " are computed that no optimizer uses: " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

// ---- Attention masks ----

// Of an attention kernel's time that stays without the mask: half of the scores need not be computed, and the mask is
// not read. Kernels that are made for masks (not cuDNN's) are slower still.
struct MaskCost {
  double low, high;
};
MaskCost mask_cost(std::string_view kernel) {
  return mentions(kernel, "fmha") || mentions(kernel, "AttentionKernel") ? MaskCost{.low = 0.45, .high = 0.25}
                                                                         : MaskCost{.low = 0.5, .high = 0.36};
}

// The shape of a mask that all sequences and heads share, of as many rows as columns; {} of others and of none.
analyze::Dims shared_mask(const Model& model, Row op) {
  const std::vector<analyze::Dims> dims = analyze::parse_input_dims(dims_of(model, op));
  if (dims.size() < 4 || dims[0].size() < 3 || dims[3].size() < 2) return {};
  const analyze::Dims& mask = dims[3];
  const size_t rank = mask.size();
  const bool is_shared = std::all_of(mask.begin(), mask.end() - 2, [](int64_t size) { return size == 1; });
  return is_shared && mask[rank - 1] == mask[rank - 2] && mask[rank - 1] > 1 ? mask : analyze::Dims{};
}

std::vector<Finding> find_attention_mask(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::unordered_set<Row> masked;  // calls of scaled_dot_product_attention
  std::unordered_set<int64_t> numbers;
  std::set<analyze::Dims> squares;
  int64_t longest = 0;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || model.text(host.name[row]) != "aten::scaled_dot_product_attention") continue;
    const analyze::Dims mask = shared_mask(model, row);
    if (mask.empty()) continue;
    masked.insert(row);
    squares.insert(mask);
    longest = std::max(longest, mask.back());
    const int64_t number = model.op_details.sequence_number[model.op_detail(row)];
    if (number != kNoNumber && number >= 0) numbers.insert(number);
  }
  if (masked.empty()) return {};
  const auto belongs = [&](Row op) {
    for (Row row = op; row != kNoRow; row = host.parent[row]) {
      if (masked.contains(row)) return true;
      const bool is_node = host.kind[row] == HostKind::kOp &&
                           mentions(model.text(host.name[row]), "ScaledDotProduct") &&
                           mentions(model.text(host.name[row]), "Backward");
      if (!is_node) continue;
      const Row detail = model.op_detail(row);
      if (detail == kNoRow) continue;
      for (Row of = model.op_details.forward[detail]; of != kNoRow; of = host.parent[of]) {
        if (masked.contains(of)) return true;
      }
      if (numbers.contains(model.op_details.sequence_number[detail])) return true;
    }
    return false;
  };
  Evidence evidence(context);
  analyze::TraitsOfNames traits(model);
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row op = model.device_slices.op[row];
    if (model.device_slices.kind[row] != DeviceKind::kKernel || op == kNoRow) continue;
    const std::string_view name = model.text(model.device_slices.name[row]);
    if (traits.of(model.device_slices.name[row]).kernel_class == analyze::KernelClass::kAttention) {
      if (!belongs(op)) continue;
      const MaskCost cost = mask_cost(name);
      evidence.add_device(row, cost.low, cost.high);
      continue;
    }
    // What makes the mask, and turns it into a bias.
    const std::vector<analyze::Dims> dims = analyze::parse_input_dims(dims_of(model, op));
    const bool makes_mask =
        std::any_of(dims.begin(), dims.end(), [&](const auto& each) { return squares.contains(each); });
    if (!makes_mask) continue;
    evidence.add_device(row, 0, 0);
    evidence.add_host(op);
  }
  if (evidence.empty()) return {};
  Finding finding{
      .id = "attention-mask",
      .try_text = "if the mask is causal, say so instead of passing it: the kernel then skips half of the work",
      .try_code = "F.scaled_dot_product_attention(q, k, v, is_causal=True)  # other masks: flex_attention",
      .confidence = Confidence::kMedium,
      .confirm_by = "look at the mask: a trace shows its shape, not its values"};
  evidence.fill(finding);
  finding.title = "attention gets a mask of " + std::to_string(longest) + " x " + std::to_string(longest) +
                  " as a tensor, which the fastest kernels do not take: it takes " +
                  short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> waste_rules() {
  return {
      {"unused-gradients", "waste", 0.03, true,
       "Gradients, or what is needed to compute them, are made and thrown away. Without a backward in the whole trace\n"
       "the forward pass builds the autograd graph for nobody: each op makes a node, and activations stay in memory\n"
       "until the result is gone. With one, parameters get gradients that no optimizer uses, as when adapters (LoRA)\n"
       "are trained on a base whose weights still require gradients; these are told by shape, what is accumulated\n"
       "against what the optimizer touches. Needs shapes.\n"
       "\n"
       "What to do: torch.inference_mode() around evaluation; requires_grad_(False) on what is not trained, which\n"
       "leaves its matmuls out of the backward.\n"
       "\n"
       "When not: the backward runs outside of the recording, or other code reads the gradients (a penalty, a log).",
       find_unused_gradients},
      {"attention-mask", "waste", 0.03, true,
       "scaled_dot_product_attention got its mask as a tensor. The fastest kernels take none: others read it for "
       "every\n"
       "score, and compute the scores that it takes out again. With is_causal=True the kernel knows which half to "
       "skip.\n"
       "\n"
       "What to do: is_causal=True for a causal mask. Sequences packed into one row, or a sliding window: "
       "flex_attention\n"
       "with a block mask. Padding: sort by length, or nested tensors.\n"
       "\n"
       "When not: the mask is neither. Only masks that all sequences share are named: the others differ from sample to "
       "sample.",
       find_attention_mask},
  };
}

}  // namespace firelane::advise
