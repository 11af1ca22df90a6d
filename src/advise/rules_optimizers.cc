// Optimizers that step one after the other, where one with all of their parameters would be enough; and an optimizer
// with a group for every few of them.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "advise/gain.h"
#include "advise/host_evidence.h"
#include "advise/loops.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/host/dispatch.h"
#include "analyze/ops/op_storages.h"
#include "analyze/steps/phases.h"

namespace firelane::advise {

namespace {

constexpr size_t kLeastInARow = 4;            // two or three are a generator and its judges
constexpr int64_t kLongestPauseNs = 200'000;  // from one to the next
// Share of the host time of the later ones that remains when their parameters are in the first one's lists: its loop
// over parameters in Python. Without a device the operators stay as well, which compute.
constexpr double kTogetherLow = 0.5;
constexpr double kTogetherHigh = 0.2;
constexpr double kLeastUpdateNs = 2'000;  // of a kernel, however little it does

// Calls of one kind, each right after the other: step(), step(), ... or zero_grad(), zero_grad(), ...
using Run = std::vector<Row>;

class Runs {
 public:
  explicit Runs(const Context& context) : context_(context), model_(context.model) {
    find(HostRole::kOptimizerStep);
    find(HostRole::kZeroGrad);
  }

  std::vector<Run> all;
  int64_t steps = 0;  // Optimizer.step calls in runs

 private:
  bool has_op_between(Row before, Row after) const {
    const HostSlices& host = model_.host_slices;
    for (Row row = before + 1; row < after; ++row) {
      if (host.kind[row] == HostKind::kOp && host.start_ns[row] >= host.end_ns(before)) return true;
    }
    return false;
  }

  void find(HostRole role) {
    const HostSlices& host = model_.host_slices;
    const analyze::OptimizerSteps optimizers(model_);
    Run now;
    const auto flush = [&] {
      if (now.size() >= kLeastInARow) {
        if (role == HostRole::kOptimizerStep) steps += static_cast<int64_t>(now.size());
        all.push_back(now);
      }
      now.clear();
    };
    for (const Row row : annotations(context_, role)) {
      // A closure with a forward and a backward pass of its own is no mere update.
      if (optimizers.update_start_ns(row) != host.start_ns[row]) {
        flush();
        continue;
      }
      const Row last = now.empty() ? kNoRow : now.back();
      const bool follows = last != kNoRow && host.lane[last] == host.lane[row] && host.name[last] == host.name[row] &&
                           host.start_ns[row] >= host.end_ns(last) &&
                           host.start_ns[row] - host.end_ns(last) <= kLongestPauseNs && !has_op_between(last, row);
      if (!follows) flush();
      now.push_back(row);
    }
    flush();
  }

  const Context& context_;
  const Model& model_;
};

// The stretch of a call that would not be made: without a device, what lies between its operators.
void add_call(const Context& context, analyze::Interval stretch, Row call, double keep, analyze::WhatIf& change) {
  const HostSlices& host = context.model.host_slices;
  const LaneId lane = host.lane[call];
  if (!context.has_device_work) {
    const Row end = context.model.lanes.host_end[static_cast<size_t>(lane)];
    for (Row row = call + 1; row < end && host.start_ns[row] < stretch.end_ns; ++row) {
      if (!is_outermost_op(host, row)) continue;
      change.host.push_back({lane, stretch.start_ns, host.start_ns[row], keep});
      stretch.start_ns = host.end_ns(row);
    }
  }
  change.host.push_back({lane, stretch.start_ns, stretch.end_ns, keep});
}

analyze::WhatIf together(const Context& context, const std::vector<Run>& runs, double keep, bool larger_kernels) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  analyze::WhatIf change;
  std::vector<Row> later;
  size_t longest = 1;
  for (const Run& run : runs) {
    longest = std::max(longest, run.size());
    for (size_t i = 1; i < run.size(); ++i) {
      add_call(context, {host.end_ns(run[i - 1]), host.end_ns(run[i])}, run[i], keep, change);
      later.push_back(run[i]);
    }
  }
  std::sort(change.host.begin(), change.host.end(),
            [](const analyze::HostCut& a, const analyze::HostCut& b) { return a.start_ns < b.start_ns; });
  for (const Row work : launched_during(model, later)) {
    const auto ns = static_cast<double>(std::max<int64_t>(1, model.device_slices.duration_ns[work]));
    const double least = std::max(1 - kLeastUpdateNs / ns, 1.0 / static_cast<double>(longest));
    change.device.push_back({work, larger_kernels ? least : (1 + least) / 2});
  }
  return change;
}

std::vector<Finding> find_many_optimizers(const Context& context) {
  if (context.study == nullptr) return {};
  const Runs runs(context);
  if (runs.steps == 0) return {};
  const Model& model = context.model;
  int64_t spent_ns = 0;
  std::vector<Row> rows;
  for (const Run& run : runs.all) {
    spent_ns += context.took_ns(model.host_slices.start_ns[run.front()], model.host_slices.end_ns(run.back()));
    rows.insert(rows.end(), run.begin(), run.end());
  }
  Finding finding{.id = "many-optimizers", .cost_ns = context.study->per_step(spent_ns), .events = runs.steps};
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  const auto gain_if = [&](double keep, bool larger_kernels) {
    return std::max<int64_t>(0, context.gain_ns(together(context, runs.all, keep, larger_kernels)));
  };
  finding.gain.low_ns = gain_if(kTogetherLow, false);
  finding.gain.high_ns = std::max(finding.gain.low_ns, gain_if(kTogetherHigh, true));
  finding.title = std::to_string(context.study->per_step(runs.steps)) +
                  " optimizers step one after the other in each step: " + short_time(finding.cost_ns) + " of it (" +
                  short_percent(finding.share_of_step) + ")";
  add_longest(finding, model, std::move(rows));
  finding.try_text =
      "give all parameters to one optimizer, in groups where learning rates differ: it updates them together";
  finding.try_code =
      "torch.optim.AdamW([{\"params\": part.parameters(), \"lr\": lr} for part, lr in parts], fused=True)";
  finding.confidence = Confidence::kMedium;
  finding.confirm_by = "compare step times; optimizers of different classes cannot be merged";
  finding.part_of = "overhead";
  finding.cause = "loop";
  return {finding};
}

// ---- Groups ----

constexpr size_t kManyGroups = 8;
constexpr size_t kSmallGroup = 4;  // tensors

// Calls for lists of tensors in a step of an optimizer: of each kind one for each group.
struct Grouped {
  Row step = kNoRow;
  std::vector<Row> calls;  // in order
  size_t groups = 0;
};

// How many tensors are in its first list; 0: not recorded.
size_t listed_tensors(const Model& model, Row op) {
  const Row detail = model.op_detail(op);
  if (detail == kNoRow || model.op_details.tensors[detail] == kNoString) return 0;
  const auto inputs = analyze::parse_storages(model.text(model.op_details.tensors[detail]));
  return static_cast<size_t>(std::count_if(inputs.begin(), inputs.end(), [](const analyze::StorageInput& input) {
    return input.place == 0 && input.in_list;
  }));
}

std::vector<Grouped> small_groups(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const analyze::OptimizerSteps optimizers(model);
  std::vector<Grouped> all;
  for (const Row step : annotations(context, HostRole::kOptimizerStep)) {
    if (optimizers.update_start_ns(step) != host.start_ns[step]) continue;
    Grouped grouped{.step = step, .calls = {}};
    std::map<StringId, size_t> calls;  // by name
    size_t tensors = 0;
    bool is_known = true;
    const Row end = model.lanes.host_end[static_cast<size_t>(host.lane[step])];
    for (Row row = step + 1; row < end && host.start_ns[row] < host.end_ns(step); ++row) {
      if (!is_outermost_op(host, row)) continue;
      const std::string_view name = model.text(host.name[row]);
      if (!name.starts_with("aten::_fused_") && !name.starts_with("aten::_foreach_")) continue;
      const size_t listed = listed_tensors(model, row);
      is_known = is_known && listed > 0;
      tensors += listed;
      ++calls[host.name[row]];
      grouped.calls.push_back(row);
    }
    if (calls.empty() || !is_known) continue;
    // Some are called twice for a group.
    grouped.groups = std::min_element(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
                       return a.second < b.second;
                     })->second;
    if (grouped.groups >= kManyGroups && tensors <= kSmallGroup * grouped.calls.size())
      all.push_back(std::move(grouped));
  }
  return all;
}

// All calls but those of the first group go, and most of what Python does for a group.
analyze::WhatIf in_one_group(const Context& context, const std::vector<Grouped>& all, double keep,
                             bool larger_kernels) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const std::vector<double>& dispatch = context.study->dispatch;  // without a device, what operators compute stays
  analyze::WhatIf change;
  std::vector<Row> later;
  for (const Grouped& grouped : all) {
    const size_t of_first = grouped.calls.size() / grouped.groups;
    int64_t from_ns = host.end_ns(grouped.calls[of_first - 1]);
    for (size_t i = of_first; i < grouped.calls.size(); ++i) {
      const Row call = grouped.calls[i];
      const LaneId lane = host.lane[call];
      change.host.push_back({lane, from_ns, host.start_ns[call], keep});
      from_ns = host.end_ns(call);
      const double stays =
          context.has_device_work ? keep : kept_in_batch(context, dispatch, host.start_ns[call], from_ns);
      change.host.push_back({lane, host.start_ns[call], from_ns, std::max(keep / 2, stays)});
      later.push_back(call);
    }
  }
  for (const Row work : launched_during(model, later)) {
    const auto ns = static_cast<double>(std::max<int64_t>(1, model.device_slices.duration_ns[work]));
    const double least = std::max(1 - kLeastUpdateNs / ns, 1.0 / static_cast<double>(all.front().groups));
    change.device.push_back({work, larger_kernels ? least : (1 + least) / 2});
  }
  return change;
}

std::vector<Finding> find_many_groups(const Context& context) {
  if (context.study == nullptr || context.study->host->chains.empty()) return {};
  const std::vector<Grouped> all = small_groups(context);
  if (all.empty()) return {};
  const Model& model = context.model;
  int64_t spent_ns = 0;
  size_t groups = 0;
  std::vector<Row> rows;
  Finding finding{.id = "many-groups"};
  for (const Grouped& grouped : all) {
    spent_ns += context.took_ns(grouped.step);
    groups = std::max(groups, grouped.groups);
    finding.events += static_cast<int64_t>(grouped.calls.size());
    rows.push_back(grouped.step);
  }
  finding.cost_ns = context.study->per_step(spent_ns);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  const Context calls = with_true_calls(context);
  finding.of_step_ns = calls.step_ns;
  finding.gain.low_ns = std::max<int64_t>(0, calls.gain_ns(in_one_group(context, all, kTogetherLow, false)));
  finding.gain.high_ns = std::max(finding.gain.low_ns, calls.gain_ns(in_one_group(context, all, kTogetherHigh, true)));
  std::string name(model.text(model.host_slices.name[rows.front()]));  // "Optimizer.step#AdamW.step"
  name = name.substr(name.find('#') + 1);
  name = name.substr(0, name.rfind('.'));
  finding.title = name + " updates " + std::to_string(groups) + " small parameter groups one after the other (" +
                  std::string(model.text(model.host_slices.name[all.front().calls.back()])) +
                  "): " + short_percent(finding.share_of_step) + " of a step";
  add_longest(finding, model, std::move(rows));
  finding.try_text = "put parameters with the same settings into one group: each group is updated by separate calls";
  finding.try_code =
      "torch.optim.AdamW([{\"params\": weights, \"weight_decay\": 0.1}, {\"params\": biases, \"weight_decay\": 0}])";
  finding.confidence = Confidence::kMedium;
  finding.confirm_by = "count the groups with different settings: len(optimizer.param_groups) need not be more";
  finding.part_of = "overhead";
  finding.cause = "many-groups";
  return {finding};
}

}  // namespace

std::vector<Rule> optimizers_rules() {
  return {
      {"many-optimizers", "training", 0.03, true,
       "Each part of a model has its own optimizer, and they step one after the other. Every call iterates over its\n"
       "parameters in Python and launches the same few kernels for a handful of tensors.\n\n"
       "This finding covers at least four Optimizer.step calls of one class in a row, with no operator between\n"
       "them; zero_grad calls in a row count as well. The gain is a replay in which the first one's kernels do the\n"
       "work of all. Steps with a backward pass between them (alternating training, gradient accumulation that\n"
       "updates too often) are excluded: one step for all would be a different algorithm.\n\n"
       "What to do: one optimizer with a parameter group for each part; each group has its own learning rate and\n"
       "weight decay.\n\n"
       "When not: the optimizers are stepped in the backward pass on purpose, to free each gradient at once.",
       find_many_optimizers},
      {"many-groups", "training", 0.03, true,
       "An optimizer has one parameter group per parameter, or per few, as created by loops over named_parameters()\n"
       "that set the weight decay of each. The fused and foreach implementations update one group after the other,\n"
       "so each call handles only a few tensors, and Python prepares every group.\n\n"
       "This finding covers steps with calls for at least eight groups, of four tensors or fewer on average. Needs\n"
       "a recording that follows tensors (firelane record does). The gain is a replay in which the first group's\n"
       "calls do the work of all; on a CPU, their computation stays.\n\n"
       "What to do: one group for all parameters with the same settings, for example one with weight decay and one\n"
       "without.\n\n"
       "When not: each group has its own learning rate, which a schedule changes.",
       find_many_groups},
  };
}

}  // namespace firelane::advise
