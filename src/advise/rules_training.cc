// Training loops: optimizer, gradients, communication.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "advise/gain.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/host/dispatch.h"
#include "analyze/steps/phases.h"

namespace firelane::advise {

namespace {

bool is_grouped(std::string_view name) {
  return name.starts_with("aten::_foreach_") || name.starts_with("aten::_fused_") ||
         name.find("fused") != std::string_view::npos;
}

// Ops below `outer` on its lane: fn(row).
template <typename Fn>
void each_op_in(const Model& model, Row outer, const Fn& fn) {
  const HostSlices& slices = model.host_slices;
  const auto lane = static_cast<size_t>(slices.lane[outer]);
  for (Row row = outer + 1; row < model.lanes.host_end[lane] && slices.start_ns[row] < slices.end_ns(outer); ++row) {
    if (slices.kind[row] == HostKind::kOp) fn(row);
  }
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "Adam" of "Optimizer.step#Adam.step".
std::string_view optimizer_name(std::string_view annotation) {
  const std::string_view rest = annotation.substr(annotation.find('#') + 1);
  return rest.substr(0, rest.find('.'));
}

// One of the program's own, or of a package: torch has no quicker form of its name.
bool is_of_torch(std::string_view name) {
  return is_one_of(name, {"Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "LBFGS", "Muon", "NAdam", "RAdam",
                          "RMSprop", "Rprop", "SGD", "SparseAdam", "Adafactor"});
}

// The quicker form that an optimizer has.
struct GroupedForm {
  std::string code;
  std::string text;
  bool fused = true;  // else foreach
};
GroupedForm grouped_form(std::string_view name, bool has_device, bool has_roots) {
  const std::string parameters = "(model.parameters(), lr=lr, ";
  if (!is_of_torch(name)) {
    if (!has_roots) {
      return {"torch._foreach_add_(parameters, gradients, alpha=-lr)  # for all of them at once",
              "do each operation for the tensors of all parameters at once (torch._foreach_*), or compile the update",
              false};
    }
    return {
        "torch.optim.AdamW" + parameters + "fused=True)",
        std::string(name) +
            " looks like Adam: torch's own has a fused form; for a different update rule, torch._foreach_* does each "
            "operation for "
            "all parameters at once",
        true};
  }
  const bool foreach = is_one_of(name, {"Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"});
  const std::string known(foreach || is_one_of(name, {"Adagrad", "Adam", "SGD"}) ? name : "AdamW");
  return {"torch.optim." + known + parameters + (foreach ? "foreach" : "fused") + "=True)",
          has_device ? "use the fused (or foreach) form of the optimizer"
          : foreach  ? "use the foreach form of the optimizer"
                     : "use the fused form of the optimizer",
          !foreach};
}

// What updates a tensor: in place, and in optimizers that are written by hand also into new ones.
bool is_update(std::string_view name, bool by_hand) {
  if (is_one_of(name, {"aten::add_", "aten::mul_", "aten::addcdiv_", "aten::addcmul_", "aten::lerp_", "aten::sqrt",
                       "aten::sub_"}))
    return true;
  return by_hand && is_one_of(name, {"aten::add", "aten::sub", "aten::mul", "aten::div", "aten::div_", "aten::pow",
                                     "aten::square", "aten::rsqrt", "aten::lerp", "aten::addcmul", "aten::addcdiv"});
}

// For optimizers that work on matrices, or on all parameters as one vector.
bool is_more_than_update(std::string_view name) {
  return is_one_of(name, {"aten::mm", "aten::matmul", "aten::bmm", "aten::addmm", "aten::dot", "aten::linalg_qr",
                          "aten::linalg_eigh", "aten::linalg_svd", "aten::cat"});
}

// What an update on the CPU is made of.
struct CpuUpdate {
  int64_t calling_ns = 0;    // Python and dispatch
  int64_t computing_ns = 0;  // what operators take beyond
  std::map<StringId, int64_t> calls;

  // Operators for one tensor: the rarest is called once for each.
  double passes() const {
    int64_t all = 0;
    int64_t tensors = INT64_MAX;
    for (const auto& [name, count] : calls) {
      all += count;
      tensors = std::min(tensors, count);
    }
    return all == 0 ? 1 : static_cast<double>(all) / static_cast<double>(tensors);
  }

  // What stays of it, at worst and at best (AdamW, Adam and SGD on tensors of 64 to 2,000,000 elements, torch 2.11, one
  // thread): calls nearly go; one pass over each tensor takes the place of several, so that plain SGD gains nothing
  // where it computes. The foreach form makes as many passes, and more memory.
  std::pair<double, double> keep(bool fused) const {
    const double once = std::min(1.0, 0.3 + 1 / passes());
    const std::pair<double, double> computing =
        fused ? std::pair(std::min(1.0, once + 0.2), std::max(0.15, once - 0.2)) : std::pair(1.0, 1.0);
    const std::pair<double, double> calling = fused ? std::pair(0.3, 0.05) : std::pair(0.6, 0.4);
    const double all = std::max(1.0, static_cast<double>(calling_ns + computing_ns));
    const auto both = [&](double of_calls, double of_work) {
      return (of_calls * static_cast<double>(calling_ns) + of_work * static_cast<double>(computing_ns)) / all;
    };
    return {both(calling.first, computing.first), both(calling.second, computing.second)};
  }
};

// Share of the device time of a tensor-by-tensor update: the fused kernel reads and writes each value once.
constexpr double kFusedKeep = 0.35;

std::vector<Finding> find_single_tensor_optimizer(const Context& context) {
  const Model& model = context.model;
  const std::vector<Row> steps = annotations(context, HostRole::kOptimizerStep);
  const analyze::OptimizerSteps optimizer(model);
  std::vector<analyze::HostCut> updates;  // a closure's forward and backward left out
  int64_t single = 0;
  int64_t grouped = 0;
  int64_t roots = 0;
  int64_t others = 0;
  int64_t host_ns = 0;
  CpuUpdate update;
  for (const Row step : steps) {
    const int64_t start_ns = optimizer.update_start_ns(step);
    const bool by_hand = !is_of_torch(optimizer_name(model.text(model.host_slices.name[step])));
    updates.push_back({model.host_slices.lane[step], start_ns, model.host_slices.end_ns(step)});
    host_ns += context.took_ns(start_ns, model.host_slices.end_ns(step));
    each_op_in(model, step, [&](Row op) {
      if (model.host_slices.start_ns[op] < start_ns) return;
      const std::string_view name = model.text(model.host_slices.name[op]);
      grouped += is_grouped(name);
      const bool updates_one = is_update(name, by_hand);
      single += updates_one;
      roots += name == "aten::sqrt" || name == "aten::rsqrt";
      others += by_hand && is_more_than_update(name);
      if (updates_one) ++update.calls[model.host_slices.name[op]];
      if (is_outermost_op(model.host_slices, op) || model.host_slices.parent[op] == step)
        update.computing_ns += std::max<int64_t>(0, context.took_ns(op) - analyze::kDispatchNs);
    });
  }
  constexpr int64_t kMinOpsAStep = 20;
  const auto count = static_cast<int64_t>(steps.size());
  if (count == 0 || grouped > 0 || others > 0 || single < kMinOpsAStep * count) return {};
  std::sort(updates.begin(), updates.end(), [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  std::vector<Row> launched = launched_during(model, steps);
  std::erase_if(launched, [&](Row work) {
    const int64_t at_ns = model.host_slices.start_ns[model.device_slices.launch[work]];
    const auto after = std::partition_point(updates.begin(), updates.end(),
                                            [&](const analyze::HostCut& update) { return update.start_ns <= at_ns; });
    return after == updates.begin() || at_ns >= std::prev(after)->end_ns;
  });
  const auto gain_if = [&](double keep) {
    analyze::WhatIf change{.host = updates};
    for (analyze::HostCut& update : change.host) update.keep = keep;
    for (const Row work : launched) change.device.push_back({work, kFusedKeep});
    return context.gain_ns(change);
  };
  Finding finding{.id = "single-tensor-optimizer", .cost_ns = context.study->per_step(host_ns)};
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  const GroupedForm form = grouped_form(optimizer_name(model.text(model.host_slices.name[steps.front()])),
                                        context.has_device_work, roots > 0);
  update.computing_ns = std::min(update.computing_ns, host_ns);
  update.calling_ns = host_ns - update.computing_ns;
  const auto [worst, best] = context.has_device_work ? std::pair(0.1, 0.0) : update.keep(form.fused);
  finding.gain = {gain_if(worst), gain_if(best)};
  finding.events = single;
  finding.title = "the optimizer updates one tensor at a time: " + counted(single / count, "operator", "operators") +
                  " and " + short_time(finding.cost_ns) + " in each step (" + short_percent(finding.share_of_step) +
                  ")";
  add_longest(finding, model, steps);
  finding.try_text = form.text;
  finding.try_code = form.code;
  finding.confidence = Confidence::kHigh;
  finding.part_of = "overhead";
  return {finding};
}

// aten::add_ right below AccumulateGrad, in the window.
std::vector<Row> additions_to_gradients(const Context& context) {
  const Model& model = context.model;
  const HostSlices& slices = model.host_slices;
  const StringId add = model.strings.find("aten::add_");
  const StringId accumulate = model.strings.find("torch::autograd::AccumulateGrad");
  std::vector<Row> rows;
  if (add == kNoString || accumulate == kNoString) return rows;
  for (Row row = 0; row < slices.size(); ++row) {
    if (slices.name[row] != add || slices.parent[row] == kNoRow || !context.in_window(slices.start_ns[row])) continue;
    if (slices.name[slices.parent[row]] == accumulate) rows.push_back(row);
  }
  return rows;
}

// Without a device: fresh memory for the next gradients costs about what filling and adding did, so that only the price
// of calling the operators is saved. What an op takes beyond it:
int64_t beyond_dispatch(const Context& context, Row op) {
  if (context.has_device_work) return 0;
  return std::max<int64_t>(0, context.took_ns(op) - analyze::kDispatchNs);
}

// The slice without all but `stays_ns` of it, and a little for what remains to be done.
analyze::HostCut cut_but(const Model& model, Row row, int64_t stays_ns, double little) {
  const auto ns = static_cast<double>(std::max<int64_t>(1, model.host_slices.duration_ns[row]));
  const double keep = little + (1 - little) * std::min(1.0, static_cast<double>(stays_ns) / ns);
  return {model.host_slices.lane[row], model.host_slices.start_ns[row], model.host_slices.end_ns(row), keep};
}

std::vector<Finding> find_zero_grad_fills(const Context& context) {
  const Model& model = context.model;
  const std::vector<Row> calls = annotations(context, HostRole::kZeroGrad);
  int64_t fills = 0;
  int64_t host_ns = 0;
  analyze::WhatIf change;
  for (const Row call : calls) {
    int64_t stays_ns = 0;
    each_op_in(model, call, [&](Row op) {
      const std::string_view name = model.text(model.host_slices.name[op]);
      if (name != "aten::zero_" && name != "aten::_foreach_zero_") return;
      ++fills;
      if (name == "aten::zero_") stays_ns += beyond_dispatch(context, op);  // also those in a _foreach_zero_
    });
    host_ns += context.took_ns(call);
    change.host.push_back(cut_but(model, call, stays_ns, 0.1));
  }
  for (const Row work : launched_during(model, calls)) change.device.push_back({work, 0});
  if (fills == 0) return {};
  // With the zeros gone the backward pass stores gradients instead of adding to them.
  const std::vector<Row> adds = additions_to_gradients(context);
  for (const Row add : adds) {
    host_ns += context.took_ns(add);
    change.host.push_back(cut_but(model, add, beyond_dispatch(context, add), 0));
  }
  for (const Row work : launched_during(model, adds)) change.device.push_back({work, 0});
  int64_t device_ns = 0;
  for (const analyze::DeviceCut& cut : change.device) device_ns += model.device_slices.duration_ns[cut.row];
  Finding finding{.id = "zero-grad-fills", .cost_ns = context.study->per_step(std::max(host_ns, device_ns))};
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.gain.high_ns = context.gain_ns(change);
  finding.gain.low_ns = finding.gain.high_ns;
  finding.events = fills;
  finding.title = "zero_grad fills gradients with zeros instead of dropping them: " + short_time(finding.cost_ns) +
                  " of each step (" + short_percent(finding.share_of_step) + ")";
  add_longest(finding, model, calls);
  finding.try_text = "drop the gradients; the next backward pass then writes instead of adding";
  finding.try_code = "optimizer.zero_grad(set_to_none=True)";
  finding.confidence = Confidence::kHigh;
  // A flag that costs nothing: said also where its gain is within the noise of steps.
  constexpr double kSmallGain = 0.03;
  finding.said_by_share = context.share_of_step(finding.gain.middle_ns()) >= kSmallGain;
  finding.part_of = "overhead";
  return {finding};
}

// Share of a step: reported even where a replay of this rank alone shows no gain, because the host or another rank is
// late.
constexpr double kMuchExposed = 0.05;

// What one rank cannot know, and how to find out.
std::string compare_ranks(const Model& model) {
  if (model.info.distributed.world_size == 1) return "there is one rank: no other rank can be late";
  return "with one rank, waiting for a late rank cannot be separated from data transfer; record all of them "
         "(firelane record -- torchrun train.py), then compare: firelane ranks DIR";
}

// Without a device: this rank waits in a collective of gloo or MPI.
std::vector<Finding> find_waiting_for_ranks(const Context& context) {
  const Model& model = context.model;
  const int64_t cost = activity_ns(context, analyze::Activity::kCollective);
  if (cost == 0) return {};
  Finding finding{.id = "exposed-communication", .cost_ns = cost, .share_of_step = context.share_of_step(cost)};
  const auto gain_if = [&](double keep) {
    return context.gain_ns({.host = cuts_of(context, {analyze::Activity::kCollective}, keep)});
  };
  finding.gain = {gain_if(0.5), gain_if(0)};
  std::vector<Row> rows;
  for (const analyze::HostSegment& segment : context.study->host->chains[0].segments) {
    if (segment.activity == analyze::Activity::kCollective && context.in_window(segment.start_ns)) {
      rows.push_back(segment.slice);
    }
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  finding.events = static_cast<int64_t>(rows.size());
  finding.title = "this rank waits for other ranks in " +
                  (rows.empty() ? "collectives" : std::string(model.text(model.host_slices.name[rows[0]]))) + ": " +
                  short_time(cost) + " of each step (" + short_percent(finding.share_of_step) +
                  "); they come later, or the network is slow";
  add_longest(finding, model, std::move(rows));
  finding.try_text =
      "look at the rank that does not wait: its input, its host code, its share of the data; then send less at a time";
  finding.try_code = "DistributedDataParallel(model, bucket_cap_mb=100, gradient_as_bucket_view=True)";
  finding.confidence = Confidence::kMedium;
  finding.said_by_share = finding.share_of_step >= kMuchExposed;
  finding.confirm_by = compare_ranks(model) + "; the rank that waits least holds up the others";
  return {finding};
}

std::vector<Finding> find_exposed_communication(const Context& context) {
  const analyze::Study& study = *context.study;
  if (!context.has_device_work) return find_waiting_for_ranks(context);
  const int64_t cost = study.per_step(study.breakdown.total.communication_ns);
  if (cost == 0) return {};
  Finding finding{.id = "exposed-communication", .cost_ns = cost, .share_of_step = context.share_of_step(cost)};
  set_gain_of_all(context, {context.gain_ns({.keep_communication = 0.5}), context.gain_ns({.keep_communication = 0})},
                  finding);
  std::vector<Row> rows;
  analyze::DeviceClasses classes(context.model);
  for (const analyze::GraphNode& node : study.graph.nodes) {
    const bool counts = node.is_device() && node.device_class == analyze::DeviceClass::kCommunication;
    if (counts && context.holds(node.row)) rows.push_back(node.row);
  }
  finding.events = static_cast<int64_t>(rows.size());
  std::sort(rows.begin(), rows.end(), [&](Row a, Row b) {
    return context.model.device_slices.duration_ns[a] > context.model.device_slices.duration_ns[b];
  });
  for (size_t i = 0; i < std::min(rows.size(), kEvidenceSlices); ++i) finding.slices.push_back({rows[i], true});
  finding.title = "communication that does not overlap with kernels takes " + short_time(cost) + " of each step (" +
                  short_percent(finding.share_of_step) + "): no other kernel runs meanwhile";
  finding.said_by_share = finding.share_of_step >= kMuchExposed;
  finding.try_text =
      "start it earlier and in larger pieces, so that it runs beside the backward pass; look for slow ranks";
  finding.try_code = "DistributedDataParallel(model, bucket_cap_mb=100, gradient_as_bucket_view=True)";
  finding.confidence = Confidence::kMedium;
  finding.confirm_by = compare_ranks(context.model);
  return {finding};
}

}  // namespace

std::vector<Rule> training_rules() {
  return {
      {"single-tensor-optimizer", "training", 0.02, true,
       "A plain optimizer loop runs several operators for each parameter tensor: hundreds of tiny kernels per step.\n"
       "The foreach form does each operation for all tensors at once, the fused form the whole update in one "
       "kernel.\n\n"
       "What to do: fused=True (or foreach=True) in the optimizer's constructor. A custom optimizer can use\n"
       "torch._foreach_add_ and similar functions, which take lists of tensors, or torch.compile.\n\n"
       "When not: tensors on several devices.",
       find_single_tensor_optimizer},
      {"zero-grad-fills", "training", 0.01, true,
       "zero_grad(set_to_none=False) writes zeros into every gradient, and the backward pass then adds to them: two\n"
       "unnecessary passes over memory.\n\n"
       "What to do: set_to_none=True, which is the default since PyTorch 2.0.\n\n"
       "When not: code that reads .grad of parameters that were not used in the step. On a CPU without a device,\n"
       "large gradients are better kept: allocating new memory costs more than writing zeros.",
       find_zero_grad_fills},
      {"exposed-communication", "training", 0.03, true,
       "Collectives (all-reduce and the like) that run while nothing computes add their whole time to the step.\n"
       "They end only when the slowest rank has arrived, so a straggler looks like slow communication.\n\n"
       "What to do: overlap with the backward pass (DDP buckets, FSDP prefetch), send less (bf16 gradients), find the\n"
       "slow rank: record all ranks with `firelane record -- torchrun ...`, then `firelane ranks DIR`.\n\nWhen not: "
       "this rank only waits for a slower one; find that first.\n\nThe gain is a replay with "
       "collectives taking half (lower end) or no time (upper end).",
       find_exposed_communication},
  };
}

}  // namespace firelane::advise
