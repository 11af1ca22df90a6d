// Unused gradients: graphs without a backward pass, parameters that no optimizer updates.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "advise/dead_passes.h"
#include "advise/evidence.h"
#include "advise/gradient_use.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/study.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

// Share of an op's time: what making a node of the graph, keeping its inputs and freeing both take. The nodes are freed
// outside of ops, so this is more than the op itself would save. Without a device the op also computes, which stays.
constexpr double kKeepLow = 0.88;
constexpr double kKeepHigh = 0.65;
constexpr double kCpuKeepLow = 0.5;
constexpr double kCpuKeepHigh = 0.3;
constexpr double kCallNs = 20'000;   // of an op on the CPU, the call itself takes at most
constexpr int64_t kLeastNodes = 10;  // per step: fewer may be one stray op

// A forward op would make no node.
void add_graph_of(const Context& context, Row op, Evidence& evidence) {
  const auto ns = static_cast<double>(context.took_ns(op) + 1);
  const double call = context.has_device_work ? 1 : std::min(1.0, kCallNs / ns);
  evidence.add_call(op, 1 - call * (1 - (context.has_device_work ? kKeepLow : kCpuKeepLow)),
                    1 - call * (1 - (context.has_device_work ? kKeepHigh : kCpuKeepHigh)));
}

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
        add_graph_of(context, op, evidence);
      }
      op = builds ? row : kNoRow;
      if (builds) last = number;
    }
  }
  if (evidence.empty() || nodes < kLeastNodes * context.step_count) return {};
  Finding finding{
      .id = "unused-gradients",
      .try_text = "turn gradients off where nothing is trained: that removes the graph and the activations it keeps",
      .try_code = "with torch.inference_mode(): ...",
      .confidence = Confidence::kMedium,
      .confirm_by = "record a whole step: a backward pass outside the recording would need this graph",
      .part_of = "overhead",
      .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  finding.title = "the forward pass builds an autograd graph (" +
                  counted(nodes / std::max<int64_t>(1, context.step_count), "node", "nodes") +
                  " a step), but no backward ever runs";
  return {finding};
}

constexpr double kNodeKeep = 0.3;  // at worst, of the host's time for a node that would not be there

// Whether the op computes such a gradient, by the shape of its result.
bool computes(const Model& model, Row op, std::string_view kernel, const Gradients& gradients) {
  const HostSlices& host = model.host_slices;
  const std::string_view name = model.text(host.name[op]);
  const std::vector<analyze::Dims> dims = analyze::parse_input_dims(input_dims_text(model, op));
  const auto is_unused = [&](const analyze::Dims& shape) { return gradients.is_unused(shape, host.start_ns[op]); };
  const auto is_one = [&](int64_t rows, int64_t columns) {
    return is_unused({rows, columns}) || is_unused({columns, rows});
  };
  if (name == "aten::mm" && dims.size() >= 2 && dims[0].size() == 2 && dims[1].size() == 2) {
    // A layer's node computes the gradient of its input first. Where both have the same shape, only the second counts.
    const Row parent = host.parent[op];
    const int64_t end_ns = host.end_ns(parent == kNoRow ? op : parent);
    for (Row next = op + 1; next < host.size() && host.lane[next] == host.lane[op]; ++next) {
      if (host.start_ns[next] >= end_ns) break;
      if (host.parent[next] == parent && host.name[next] == host.name[op]) return false;
    }
    return is_one(dims[0][0], dims[1][1]);
  }
  if (name == "aten::copy_" && !dims.empty()) {
    return dims[0].size() == 2 ? is_one(dims[0][0], dims[0][1]) : is_unused(dims[0]);
  }
  if (name == "aten::sum" && !dims.empty() && dims[0].size() > 1) return is_unused({dims[0].back()});
  if (name == "aten::convolution_backward" && dims.size() > 2) {
    return contains(kernel, "wgrad") && is_unused(dims[2]);
  }
  return false;
}

// The node of the graph that goes with the op, where that does nothing else (a cast back to the parameter's type); else
// the op.
Row node_of(const Model& model, Row op) {
  const HostSlices& host = model.host_slices;
  Row top = op;
  while (host.parent[top] != kNoRow && host.kind[host.parent[top]] == HostKind::kOp) top = host.parent[top];
  return contains(model.text(host.name[top]), "ToCopyBackward") ? top : op;
}

// Nodes before the one that accumulates a weight's gradient that exist for it alone: they hand over the bias' gradient,
// transpose or cast the weight's.
std::vector<Row> nodes_of_weight(const Model& model, Row node) {
  constexpr Row kMostRows = 60;
  const HostSlices& host = model.host_slices;
  std::vector<Row> out;
  const Row lane_begin = model.lanes.host_begin[static_cast<size_t>(host.lane[node])];
  for (Row row = node; row > lane_begin && node - row < kMostRows; --row) {
    if (!is_outermost_op(host, row - 1)) continue;
    const std::string_view name = model.text(host.name[row - 1]);
    const bool is_its = name.ends_with(": TBackward0") || name.ends_with(": ToCopyBackward0");
    // The bias' gradient comes before that of its weight, and is one-dimensional: not taken for a weight itself.
    if (!is_its && !(name.ends_with("AccumulateGrad") && out.size() == 1)) break;
    out.push_back(row - 1);
  }
  return out;
}

// For the node of a linear layer whose weight gradient is unused: all that follows the gradient of its input. The
// product for the weight, its views, and the sum for the bias go together.
class LayerTails {
 public:
  LayerTails(const Model& model, const analyze::Phases& phases, const Gradients& gradients) : model_(model) {
    const HostSlices& host = model.host_slices;
    const StringId product = model.strings.find("aten::mm");
    if (product == kNoString) return;
    for (Row op = 0; op < host.size(); ++op) {
      if (host.name[op] != product || host.kind[op] != HostKind::kOp) continue;
      if (phases.host[op] != analyze::Phase::kBackward || !computes(model, op, "", gradients)) continue;
      const Row node = outermost_op(model, op);
      int64_t from_ns = host.start_ns[op];
      for (Row row = node + 1; row < op; ++row) {
        if (host.name[row] == product) from_ns = host.end_ns(row);
      }
      from_ns_[node] = from_ns;
    }
  }

  bool holds(Row op) const {
    if (from_ns_.empty()) return false;
    const auto found = from_ns_.find(outermost_op(model_, op));
    return found != from_ns_.end() && model_.host_slices.start_ns[op] >= found->second;
  }
  const std::map<Row, int64_t>& all() const { return from_ns_; }

 private:
  const Model& model_;
  std::map<Row, int64_t> from_ns_;  // by node
};

// By which autograd joins an op and its node; -1 when it was not recorded.
int64_t number_of(const Model& model, Row op) {
  const Row detail = model.op_detail(op);
  const int64_t number = detail == kNoRow ? kNoNumber : model.op_details.sequence_number[detail];
  return number == kNoNumber ? -1 : number;
}

// A backward pass goes from the loss to the first layers: once it has the last gradient that is used, all that follows
// in the same pass is for nobody, gradients of activations too.
class NeedlessEnd {
 public:
  NeedlessEnd(const Context& context, const Gradients& gradients) : host_(context.model.host_slices) {
    for (const analyze::Interval& step : gradients.passes) {
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
    int64_t number = number_of(model_, node);
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
        const int64_t number = number_of(model_, node);
        if (!contains(model_.text(host.name[node]), "evaluate_function")) continue;
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
  // For the last node with a number before this one on its thread: whose gradient it hands over.
  int64_t number_before(Row row) const {
    constexpr int kMostRows = 200;
    const HostSlices& host = model_.host_slices;
    Row at = outermost(row);
    for (int i = 0; i < kMostRows && at > model_.lanes.host_begin[static_cast<size_t>(host.lane[row])]; ++i) {
      --at;
      if (is_outermost_op(host, at) && number_of(model_, at) >= 0) return number_of(model_, at);
    }
    return -1;
  }

  const Model& model_;
  std::vector<Step> steps_;
};

// The op of a forward pass, outermost, that made a node of the backward pass: they have the same number.
class ForwardOps {
 public:
  ForwardOps(const Context& context, const analyze::Phases& phases) : model_(context.model) {
    const HostSlices& host = model_.host_slices;
    Row outer = kNoRow;
    for (Row row = 0; row < host.size(); ++row) {
      if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
      if (is_outermost_op(host, row)) outer = row;
      if (phases.host[row] != analyze::Phase::kForward) continue;
      const int64_t number = number_of(model_, row);
      if (number >= 0) by_number_[number] = outer;
    }
  }
  Row of(Row node) const {
    const auto found = by_number_.find(number_of(model_, node));
    return found == by_number_.end() ? kNoRow : found->second;
  }

 private:
  const Model& model_;
  std::unordered_map<int64_t, Row> by_number_;
};

std::vector<Finding> find_unused_gradients(const Context& context) {
  const auto& phases = context.trace.get<analyze::find_phases>();
  if (!phases.has_backward) return find_graph_without_backward(context);
  const Gradients gradients = unused_gradients(context, phases);
  if (gradients.empty()) return {};
  const Model& model = context.model;
  const NeedlessEnd last(context, gradients);
  const UnusedPart part(context, gradients);
  const DeadPasses dead(model, gradients);
  const LayerTails tails(model, phases, gradients);
  const auto is_needless = [&](Row op) { return last.holds(op) || part.holds(op) || dead.holds(op); };
  const auto is_computed = [&](Row op, std::string_view kernel) {
    return tails.holds(op) || computes(model, op, kernel, gradients);
  };
  Evidence evidence(context);
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row op = model.device_slices.op[row];
    if (model.device_slices.kind[row] != DeviceKind::kKernel || op == kNoRow) continue;
    if (phases.host[op] != analyze::Phase::kBackward) continue;
    const bool needless = is_needless(op);
    if (!needless && !is_computed(op, model.text(model.device_slices.name[row]))) continue;
    evidence.add_device(row, 0, 0);
    if (!needless && !tails.holds(op)) evidence.add_host(node_of(model, op), kNodeKeep);
  }
  const ForwardOps forward(context, phases);
  std::set<Row> graph;        // forward ops whose nodes are all for nobody
  std::vector<Row> for_loss;  // of these, those that only lead to a loss whose gradients nobody uses
  for (Row op = 0; op < model.host_slices.size(); ++op) {
    if (!is_outermost_op(model.host_slices, op) || phases.host[op] != analyze::Phase::kBackward) continue;
    if (!is_needless(op)) continue;
    const Row made_by = forward.of(op);
    if (made_by != kNoRow && graph.insert(made_by).second) {
      if (dead.holds(op)) {
        for_loss.push_back(made_by);
      } else {
        add_graph_of(context, made_by, evidence);
      }
    }
    if (context.has_device_work) {
      evidence.add_host(op, kNodeKeep);
    } else {
      evidence.add_call(op, 0.1, 0);
    }
    evidence.add_way_to(op);
  }
  for_loss = with_those_between(model, std::move(for_loss));
  for (const Row op : for_loss) {
    if (context.has_device_work) {
      evidence.add_host(op, kNodeKeep);
    } else {
      evidence.add_call(op, 0.1, 0);
    }
    evidence.add_way_to(op);
  }
  if (context.has_device_work) {
    for (const Row work : launched_during(model, for_loss)) evidence.add_device(work, 0, 0);
  }
  std::set<Row> seen(gradients.nodes.begin(), gradients.nodes.end());
  const auto add_node = [&](Row node) {
    evidence.add_host(node, kNodeKeep);
    evidence.add_way_to(node);
  };
  for (const Row node : gradients.nodes) {
    if (is_needless(node)) continue;
    add_node(node);
    for (const Row before : nodes_of_weight(model, node)) {
      if (!is_needless(before) && seen.insert(before).second) add_node(before);
    }
  }
  for (const auto& [node, from_ns] : tails.all()) {
    if (is_needless(node) || !context.in_window(from_ns)) continue;
    evidence.add_stretch(model.host_slices.lane[node], from_ns, model.host_slices.end_ns(node));
  }
  if (!context.has_device_work) {
    for (Row op = 0; op < model.host_slices.size(); ++op) {
      if (model.host_slices.kind[op] != HostKind::kOp || phases.host[op] != analyze::Phase::kBackward) continue;
      if (!is_needless(op) && computes(model, op, "wgrad", gradients)) evidence.add_call(op, 0.1, 0);
    }
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "unused-gradients",
                  .try_text = "freeze parameters that are not trained: the backward pass then skips their gradients",
                  .try_code = "base_model.requires_grad_(False)",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare the parameters that have .grad with those of the optimizer",
                  .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  finding.title = "gradients of " + counted(gradients.count, "parameter", "parameters") +
                  " are computed that no optimizer uses: " + short_percent(finding.share_of_step) + " of a step";
  if (gradients.thrown_away) {
    finding.title =
        "gradients of " + counted(gradients.count, "parameter", "parameters") +
        " are computed and thrown away before an optimizer reads them: " + short_percent(finding.share_of_step) +
        " of a step";
    finding.try_text =
        "a loss reaches parameters that it does not train: detach its input, or freeze these parameters meanwhile";
    finding.try_code = "loss_d = f(D(fake.detach()))  # and D.requires_grad_(False) during G's backward";
    finding.confirm_by = "look at which parameters have .grad when zero_grad() is called";
    if (!for_loss.empty()) {
      finding.title += ", with the forward pass that only they need";
      finding.try_text = "remove that pass: if it is only there for the loss, the previous pass already computed it";
      finding.try_code = "loss = closure()  # once, and log that; or evaluate under torch.no_grad()";
    }
  }
  return {finding};
}

}  // namespace

std::vector<Rule> gradients_rules() {
  return {
      {"unused-gradients", "waste", 0.03, true,
       "Gradients, or the data needed to compute them, are created and thrown away. Without a backward pass in the\n"
       "whole trace, the forward pass builds an autograd graph that is never used: each op creates a node, and\n"
       "activations stay in memory until the result is freed. With one, parameters get gradients that no optimizer\n"
       "uses, as when adapters (LoRA) are trained on a base model whose weights still require gradients. These are\n"
       "identified by shape: the gradients accumulated are compared with the parameters that the optimizer updates,\n"
       "and counted per backward pass. Needs shapes. Where the recording follows tensors (firelane record does),\n"
       "gradients are identified individually: those freed before an optimizer reads them, such as those of a\n"
       "generator through which the discriminator's loss is propagated.\n\n"
       "What to do: torch.inference_mode() around evaluation; requires_grad_(False) on parameters that are not\n"
       "trained, which removes their matmuls from the backward pass.\n\n"
       "When not: the backward pass runs outside the recording, or other code reads the gradients (a penalty, a\n"
       "log).",
       find_unused_gradients},
  };
}

}  // namespace firelane::advise
