// Work that was done before: backward passes through the same operators, whole copies of tensors, constants that are
// built and copied to the device in every step.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "advise/evidence.h"
#include "advise/factories.h"
#include "advise/gain.h"
#include "advise/host_evidence.h"
#include "advise/loops.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/host/dispatch.h"
#include "analyze/host/host_time.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/study.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

// Device work launched below each of `ops`, in the order of device rows.
std::vector<Row> work_below(const Model& model, const std::unordered_set<Row>& ops) {
  std::vector<bool> is_wanted(model.host_slices.size());
  for (const Row op : ops) is_wanted[op] = true;
  std::vector<Row> out;
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    for (Row outer = launch; outer != kNoRow; outer = model.host_slices.parent[outer]) {
      if (!is_wanted[outer]) continue;
      out.push_back(row);
      break;
    }
  }
  return out;
}

// ---- Backward passes ----

constexpr std::string_view kNode = "autograd::engine::evaluate_function";

struct Again {
  std::vector<Row> nodes;
  std::vector<analyze::Interval> ways;  // from the end of one pass into the next that runs such nodes
  int64_t passes = 1;                   // at most, through one operator in one step
  bool sums_up = false;                 // parameters get gradients, which are added up
};

// Whether the operator of the forward pass that a node belongs to ran in a backward pass itself: gradients are
// differentiated (create_graph, as for penalties on gradients and for equations with derivatives), and each pass
// through a node is for another one.
bool differentiates_gradient(const Model& model, const analyze::Phases& phases, Row node) {
  for (Row row = node; row <= node + 1 && row < model.host_slices.size(); ++row) {
    const Row detail = row == node || model.host_slices.parent[row] == node ? model.op_detail(row) : kNoRow;
    const Row forward = detail == kNoRow ? kNoRow : model.op_details.forward[detail];
    if (forward != kNoRow && phases.host[forward] == analyze::Phase::kBackward) return true;
  }
  return false;
}

// Nodes of the graph that ran before in the same step. Each operator's node has a number of its own; those that hand a
// parameter its gradient have none, and count as the node before them. Within a pass numbers fall: where they rise, the
// next pass has begun.
Again nodes_again(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const auto& phases = context.trace.get<analyze::find_phases>();
  Again out;
  std::vector<bool> is_node(model.strings.size(), false);
  for (size_t name = 0; name < is_node.size(); ++name) {
    is_node[name] = model.text(static_cast<StringId>(name)).starts_with(kNode);
  }
  for (const analyze::FoundStep& step : context.study->steps.steps) {
    if (step.warm_up) continue;
    Again found;
    bool of_gradients = false;
    for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
      const auto begin = host.start_ns.begin();
      const Row first = static_cast<Row>(
          std::lower_bound(begin + model.lanes.host_begin[lane], begin + model.lanes.host_end[lane], step.start_ns) -
          begin);
      std::map<std::pair<int64_t, int64_t>, int64_t> seen;  // by the node's number, which each thread counts
      bool again = false;
      int64_t number_before = INT64_MAX;
      int64_t end_before_ns = INT64_MAX;
      analyze::Interval way{0, 0};  // into the pass that runs
      for (Row row = first; row < model.lanes.host_end[lane] && host.start_ns[row] < step.end_ns; ++row) {
        if (!is_node[static_cast<uint32_t>(host.name[row])]) continue;
        const Row detail = model.op_detail(row);
        const int64_t number = detail == kNoRow ? kNoNumber : model.op_details.sequence_number[detail];
        if (number != kNoNumber && number >= 0) {
          const int64_t times = ++seen[{model.op_details.forward_thread[detail], number}];
          again = times > 1;
          found.passes = std::max(found.passes, times);
          if (number > number_before) way = {end_before_ns, host.start_ns[row]};
          number_before = number;
        }
        of_gradients = of_gradients || differentiates_gradient(model, phases, row);
        end_before_ns = host.end_ns(row);
        if (!again) continue;
        found.nodes.push_back(row);
        // Asked for by autograd.grad, the gradient is handed over instead: nothing runs inside.
        const bool does_it = row + 1 < host.size() && host.parent[row + 1] == row;
        found.sums_up = found.sums_up || (does_it && contains(model.text(host.name[row]), "AccumulateGrad"));
        if (way.end_ns > way.start_ns) found.ways.push_back(way);
        way = {0, 0};
      }
    }
    if (of_gradients) continue;
    out.nodes.insert(out.nodes.end(), found.nodes.begin(), found.nodes.end());
    out.ways.insert(out.ways.end(), found.ways.begin(), found.ways.end());
    out.passes = std::max(out.passes, found.passes);
    out.sums_up = out.sums_up || found.sums_up;
  }
  return out;
}

// What lies between the operators of the training thread on the way: the engine is called, its thread wakes up, and
// the caller when it is done. Operators stay, but for the one that makes the gradient of a loss by itself.
void add_ways(const Context& context, const std::vector<analyze::Interval>& ways, Evidence& evidence) {
  constexpr int64_t kLongestGapNs = 500'000;  // longer ones are code of the program
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const LaneId lane = context.study->host->chains[0].lanes[0];
  const auto l = static_cast<size_t>(lane);
  const auto begin = host.start_ns.begin();
  for (const analyze::Interval& way : ways) {
    int64_t from_ns = way.start_ns;
    const auto add_until = [&](int64_t to_ns) {
      if (to_ns - from_ns <= kLongestGapNs) evidence.add_stretch(lane, from_ns, to_ns);
    };
    const auto first = std::lower_bound(begin + model.lanes.host_begin[l], begin + model.lanes.host_end[l], from_ns);
    for (auto row = static_cast<Row>(first - begin); row < model.lanes.host_end[l]; ++row) {
      if (host.start_ns[row] >= way.end_ns) break;
      if (!is_outermost_op(host, row) || model.text(host.name[row]) == "aten::ones_like") continue;
      add_until(host.start_ns[row]);
      from_ns = host.end_ns(row);
    }
    add_until(way.end_ns);
  }
}

// Of a kernel, what stays if a larger one does the work of `passes` of them.
double kept_of_kernel(const Model& model, Row work, int64_t passes) {
  constexpr double kLeastKernelNs = 2'000;  // which each of them takes however little it does
  const auto ns = static_cast<double>(std::max<int64_t>(1, model.device_slices.duration_ns[work]));
  return std::max(1.0 - kLeastKernelNs / ns, 1.0 / static_cast<double>(passes));
}

std::vector<Finding> find_repeated_backward(const Context& context) {
  if (context.study == nullptr) return {};
  constexpr double kKeepLow = 0.05;
  const Model& model = context.model;
  const Again again = nodes_again(context);
  if (again.nodes.empty()) return {};
  const Context calls = with_true_calls(context);
  // Passes whose gradients nobody adds up: a row of a Jacobian each. One pass for all rows still computes all of them.
  constexpr int64_t kRows = 8;
  const bool is_jacobian = again.passes >= kRows && !again.sums_up;
  std::vector<double> dispatch;
  if (is_jacobian && !context.has_device_work)
    dispatch = analyze::dispatch_shares(model, context.study->host->chains[0], context.window);
  Evidence evidence(calls);
  for (const Row node : again.nodes) {
    if (context.has_device_work) {
      evidence.add_host(node, kKeepLow);
    } else if (is_jacobian) {
      const double keep =
          kept_in_batch(context, dispatch, model.host_slices.start_ns[node], model.host_slices.end_ns(node));
      evidence.add_call(node, std::max(keep, kKeepLow), keep);
    } else {
      evidence.add_call(node, kKeepLow, 0);
    }
    evidence.add_way_to(node);
  }
  add_ways(context, again.ways, evidence);
  if (context.has_device_work) {
    for (const Row work : work_below(model, {again.nodes.begin(), again.nodes.end()})) {
      const double keep = is_jacobian ? kept_of_kernel(model, work, again.passes) : 0;
      evidence.add_device(work, keep, keep);
    }
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "repeated-backward",
                  .try_text = "add the losses up and go back once: the gradients are the same",
                  .try_code = "(loss_a + loss_b).backward()  # instead of one backward(retain_graph=True) for each",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare the gradients: only what uses those of each loss by itself needs them apart",
                  .part_of = "overhead",
                  .precedence = Precedence::kNeedless};
  if (is_jacobian) {
    finding.try_text = "go back once for all rows: autograd and torch.func take a batch of gradients";
    finding.try_code =
        "torch.autograd.grad(y, x, rows, is_grads_batched=True)  # or torch.func.jacrev; instead of grad(y[:, i], x) "
        "each";
    finding.confirm_by = "compare the gradients and step times";
    finding.precedence = Precedence::kByGain;
  }
  evidence.fill(finding);
  finding.of_step_ns = calls.step_ns;
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.events = static_cast<int64_t>(again.nodes.size());
  finding.title =
      "the backward pass goes through the same operators up to " + std::to_string(again.passes) + " times in a step: " +
      counted(context.study->per_step(finding.events), "node of the graph runs", "nodes of the graph run") + " again";
  return {finding};
}

// ---- Whole copies ----

std::vector<Finding> find_clones(const Context& context) {
  constexpr int64_t kLeastBytes = int64_t{128} << 10;
  constexpr double kKeepLow = 0.1;
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const auto& phases = context.trace.get<analyze::find_phases>();
  std::unordered_set<Row> clones;
  int64_t bytes = 0;
  Evidence evidence(context);
  for (Row row = 0; row < host.size(); ++row) {
    if (!is_outermost_op(host, row) || !context.in_window(host.start_ns[row])) continue;
    if (model.text(host.name[row]) != "aten::clone" || phases.host[row] == analyze::Phase::kBackward) continue;
    const std::vector<analyze::OpTensor> inputs = analyze::input_tensors(model, row);
    if (inputs.empty() || !inputs[0].dense || inputs[0].bytes < kLeastBytes) continue;
    clones.insert(row);
    bytes += inputs[0].bytes;
    if (context.has_device_work) {
      evidence.add_host(row, kKeepLow);
    } else {
      evidence.add_call(row, kKeepLow, 0);
    }
    evidence.add_way_to(row);
  }
  if (clones.empty()) return {};
  if (context.has_device_work) {
    for (const Row work : work_below(model, clones)) evidence.add_device(work, 0, 0);
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "whole-copies",
                  .try_text =
                      "keep what it takes to go back (a length, the part that changes), or write into a second "
                      "buffer and swap the two",
                  .try_code = "undo = state[begin:end].clone()  # instead of state.clone()",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "leave the copies out of some steps"};
  evidence.fill(finding);
  finding.events = static_cast<int64_t>(clones.size());
  finding.title = "tensors are copied as they are (clone): " + short_bytes(bytes / context.step_count) +
                  " in each step, " + short_percent(finding.share_of_step) + " of it";
  return {finding};
}

// ---- Constants ----

// A tensor that the CPU builds from numbers, and its way to the device.
struct Built {
  Row first = kNoRow;
  Row copy = kNoRow;   // the operator that copies it
  int64_t end_ns = 0;  // with what torch.tensor does after its copy
  std::string what;    // operators and shapes: the same in every step if it is a constant
};

class ConstantFinder {
 public:
  explicit ConstantFinder(const Context& context) : context_(context), model_(context.model) {
    const HostSlices& host = model_.host_slices;
    lane_ = context.study->host->chains[0].lanes[0];
    copies_.resize(host.size());
    launches_.resize(host.size());
    for (Row row = 0; row < model_.device_slices.size(); ++row) {
      const Row launch = model_.device_slices.launch[row];
      if (launch == kNoRow || host.lane[launch] != lane_) continue;
      const bool to_device = model_.device_slices.kind[row] == DeviceKind::kCopy &&
                             model_.copy_kinds(row).direction == CopyDirection::kHtoD;
      Row outer = launch;
      while (host.parent[outer] != kNoRow && host.kind[host.parent[outer]] == HostKind::kOp) outer = host.parent[outer];
      (to_device ? copies_ : launches_)[outer] = true;
    }
    analyze::InputTensors tensors(model_);
    for (Row op = 0; op < host.size(); ++op) {
      if (!launches_[op]) continue;
      const std::string_view name = model_.text(host.name[op]);
      if (name != "aten::linear" && name != "aten::matmul" && !name.starts_with("aten::conv")) continue;
      const std::vector<analyze::OpTensor>& inputs = tensors.of(op);
      if (!inputs.empty() && inputs[0].dims.size() > 1) batches_.insert(inputs[0].dims[0]);
    }
  }

  std::vector<Built> all() {
    const HostSlices& host = model_.host_slices;
    const analyze::HostChain alone{.lanes = {lane_}, .segments = {}};
    std::vector<Built> out;
    Built now;
    bool constant = false;
    bool random = false;
    bool fresh_copy = false;  // the last operator copied: torch.tensor(..., device=...) marks its result after that
    const auto reset = [&] {
      now = {};
      constant = random = fresh_copy = false;
    };
    analyze::each_outermost(
        model_, alone, [&](Row row) { return host.kind[row] == HostKind::kOp; },
        [&](Row row) {
          if (!context_.in_window(host.start_ns[row])) return;
          const std::string_view name = model_.text(host.name[row]);
          if (launches_[row] || loads(row)) return reset();
          if (fresh_copy && name == "aten::lift_fresh") {
            constant = !is_batch(row, name);
          } else if (fresh_copy) {
            if (name != "aten::detach_" && name != "detach_") reset();
          }
          if (now.first == kNoRow || host.start_ns[row] - now.end_ns > kLongestPauseNs) {
            reset();
            now.first = row;
          }
          now.end_ns = host.end_ns(row);
          now.what += std::string(name) + dims_of(row);
          constant = constant || (is_factory(name) && !is_batch(row, name));
          random = random || is_random(name);
          if (copies_[row]) {
            now.copy = row;
            fresh_copy = true;
          }
          if (now.copy != kNoRow && constant && !random) {
            if (!out.empty() && out.back().copy == now.copy) out.pop_back();
            out.push_back(now);
          }
        });
    return out;
  }

 private:
  static constexpr int64_t kLongestPauseNs = 500'000;  // numbers in a Python list become a tensor meanwhile

  // torch.tensor(...) of as many numbers as the model's inputs have rows: labels, actions, lengths, which change.
  bool is_batch(Row op, std::string_view name) const {
    if (name != "aten::lift_fresh") return false;
    const std::vector<analyze::OpTensor> inputs = analyze::input_tensors(model_, op);
    return !inputs.empty() && !inputs[0].dims.empty() && batches_.contains(inputs[0].dims[0]);
  }

  // A batch, which is another one every time.
  bool loads(Row op) {
    const analyze::HostChain& chain = context_.study->host->chains[0];
    const size_t segment = chain.segment_after(model_.host_slices.start_ns[op], segment_);
    return segment < chain.segments.size() && chain.segments[segment].activity == analyze::Activity::kInput;
  }

  std::string dims_of(Row op) const {
    const Row detail = model_.op_detail(op);
    if (detail == kNoRow || model_.op_details.input_dims[detail] == kNoString) return {};
    return std::string(model_.text(model_.op_details.input_dims[detail]));
  }

  const Context& context_;
  const Model& model_;
  LaneId lane_{};
  size_t segment_ = 0;                   // where the walk is
  std::vector<bool> copies_, launches_;  // by host slice: outermost operators
  std::unordered_set<int64_t> batches_;  // first dimensions of what the model's layers take
};

std::vector<Finding> find_constant_copies(const Context& context) {
  if (!context.has_device_work || context.study == nullptr || context.study->host->chains.empty()) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::map<std::string, std::vector<Built>> by_what;
  for (Built& built : ConstantFinder(context).all()) by_what[built.what].push_back(built);
  analyze::WhatIf change;
  std::unordered_set<Row> copies;
  Finding finding{.id = "constant-copies"};
  int64_t spent_ns = 0;
  for (const auto& [what, all] : by_what) {
    const auto count = static_cast<int64_t>(all.size());
    if (count < context.step_count) continue;  // not in every step
    for (const Built& built : all) {
      change.host.push_back({host.lane[built.copy], way_start_ns(model, built.first), built.end_ns, 0});
      spent_ns += built.end_ns - host.start_ns[built.first];
      copies.insert(built.copy);
    }
  }
  constexpr int64_t kLeastSteps = 2;  // what comes once may be one of its kind
  if (copies.empty() || context.step_count < kLeastSteps) return {};
  for (const Row work : work_below(model, copies)) change.device.push_back({work, 0});
  for (const analyze::SyncRow& sync : context.study->syncs.rows) {
    for (Row outer = sync.call; outer != kNoRow; outer = host.parent[outer]) {
      if (copies.contains(outer)) change.waits.push_back(sync.call);
    }
  }
  std::sort(change.host.begin(), change.host.end(),
            [](const analyze::HostCut& a, const analyze::HostCut& b) { return a.start_ns < b.start_ns; });
  finding.cost_ns = context.study->per_step(spent_ns);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.gain.high_ns = std::max<int64_t>(0, context.gain_ns(change));
  finding.gain.low_ns = finding.gain.high_ns * 9 / 10;
  finding.events = static_cast<int64_t>(copies.size());
  add_longest(finding, model, {copies.begin(), copies.end()});
  finding.title = "the CPU builds the same tensors in every step and copies them to the device: " +
                  counted(context.study->per_step(finding.events), "copy", "copies") + ", " +
                  short_time(finding.cost_ns) + " of each step (" + short_percent(finding.share_of_step) + ")";
  finding.try_text = "make them once, on the device, and keep them: they come from the same calls with the same shapes";
  finding.try_code = "self.register_buffer(\"mean\", torch.tensor([0.485, 0.456, 0.406]))  # moves with the model";
  finding.confidence = Confidence::kMedium;
  finding.confirm_by = "see whether their values change from step to step";
  finding.part_of = "overhead";
  finding.cause = "host-compute";
  return {finding};
}

}  // namespace

std::vector<Rule> again_rules() {
  return {
      {"repeated-backward", "waste", 0.05, true,
       "The backward pass runs through the same operators several times in one step:\n"
       "loss_a.backward(retain_graph=True) and then loss_b.backward(). What the losses share, often nearly all of\n"
       "the model, is differentiated for each of them, and the gradients are added up in the parameters.\n\n"
       "Found by the numbers that autograd gives its nodes: a node that runs twice in a step, unless gradients are\n"
       "differentiated in it (create_graph), for which passes are needed. The gain is a replay without all runs but\n"
       "the first. Eight passes and more whose gradients no parameter adds up are rows of a Jacobian\n"
       "(torch.autograd.grad in a loop): one pass for all rows computes as much as they do, and only the calls are\n"
       "saved.\n\n"
       "What to do: add the losses up, with their weights, and call backward once. Rows of a Jacobian: autograd.grad\n"
       "with is_grads_batched=True, torch.func.jacrev, or vmap.\n\n"
       "When not: gradients of the losses are needed apart (projected or normalized gradients, adversarial\n"
       "training).",
       find_repeated_backward},
      {"whole-copies", "memory", 0.05, true,
       "Large tensors are copied as they are, in the same layout and type: clone() of a cache, a state or a batch, "
       "often to "
       "be\n"
       "able to go back. Each copy reads and writes every byte.\n\n"
       "Counted are clones of 128 KiB and more that the program itself asks for, outside of the backward pass; the "
       "gain "
       "is a "
       "replay\n"
       "without them.\n\n"
       "What to do: keep what changes, remember a length, swap two buffers, or write where the copy would be changed "
       "anyway.\n\n"
       "When not: both versions are needed whole.",
       find_clones},
      {"constant-copies", "input", 0.03, true,
       "torch.tensor([...], device=\"cuda\"), or torch.arange(n).to(\"cuda\"), builds a tensor on the CPU and copies "
       "it from "
       "pageable\n"
       "memory, for which the host waits. In the loop that happens in every step, although the values are the same.\n\n"
       "Found are copies of tensors that were made from numbers alone (torch.tensor, arange, linspace, full, ones, and "
       "what is\n"
       "computed from them on the CPU), with the same operators and shapes in every step. A trace has no values: "
       "numbers "
       "that\n"
       "change look the same.\n\n"
       "What to do: make them once, with device=\"cuda\", and keep them: register_buffer in a module.\n\n"
       "When not: the numbers change with every step; then pass them as Python numbers, or copy them from pinned "
       "memory.",
       find_constant_copies},
  };
}

}  // namespace firelane::advise
