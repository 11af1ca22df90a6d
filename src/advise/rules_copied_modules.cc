// Whole models that are copied in every step, tensor by tensor: copy.deepcopy(model), {k: v.clone() for state_dict()}.
//
// A deep copy allocates each storage and copies its bytes; a dict of clones calls clone for each tensor. Either way, a
// run of operators that only allocate, set and copy appears outside forward, backward and optimizer step.
#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"

namespace firelane::advise {

namespace {

constexpr int64_t kLeastTensors = 8;         // in a row: fewer are no model
constexpr int64_t kPauseInCopyNs = 500'000;  // Python between two of them

bool is_named(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
bool makes_memory(std::string_view name) {
  return is_named(name, {"aten::empty", "aten::new_empty", "aten::empty_like", "aten::empty_strided", "aten::clone"});
}
bool copies_tensor(std::string_view name) { return name == "aten::clone" || name == "aten::copy_"; }
bool belongs(std::string_view name) {
  return makes_memory(name) || copies_tensor(name) || analyze::is_view_op(name) ||
         is_named(name, {"aten::set_", "aten::detach", "aten::alias", "aten::lift_fresh", "aten::requires_grad_"});
}

// For averages of weights that are computed tensor by tensor: rate * now + (1 - rate) * old.
bool averages(std::string_view name) {
  return is_named(name, {"aten::mul", "aten::add", "aten::sub", "aten::rsub", "aten::lerp", "aten::mul_", "aten::add_",
                         "aten::sub_", "aten::lerp_"});
}

// Operators in a row that copy tensors one by one.
struct CopyRun {
  std::vector<Row> ops;
  int64_t tensors = 0;
  int64_t made = 0;
  int64_t bytes = 0;
  std::set<analyze::Dims> shapes;  // of what is copied
  // What is computed from the copies one by one and loaded into another model: part of the run if it is that.
  std::vector<Row> then;
  int64_t loaded = 0;

  bool is_model() const { return tensors >= kLeastTensors && made >= tensors; }
  bool is_averaged() const { return loaded >= kLeastTensors; }
  Row last() const { return then.empty() ? ops.back() : then.back(); }
};

bool is_of_copies(const Model& model, Row op, const CopyRun& run) {
  if (!averages(model.text(model.host_slices.name[op])) || !run.is_model()) return false;
  const std::vector<analyze::OpTensor> inputs = analyze::input_tensors(model, op);
  return !inputs.empty() && run.shapes.contains(inputs[0].dims);
}

std::vector<CopyRun> copy_runs(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const auto& phases = context.trace.get<analyze::find_phases>();
  const LaneId lane = context.study->host->chains[0].lanes[0];
  const auto l = static_cast<size_t>(lane);
  std::vector<CopyRun> runs;
  CopyRun run;
  const auto close = [&] {
    if (run.is_averaged()) run.ops.insert(run.ops.end(), run.then.begin(), run.then.end());
    // Copies into tensors that were there before keep them: nothing is made.
    if (run.is_model()) runs.push_back(std::move(run));
    run = {};
  };
  for (Row row = model.lanes.host_begin[l]; row < model.lanes.host_end[l]; ++row) {
    if (!is_outermost_op(host, row) || !context.in_window(host.start_ns[row])) continue;
    const std::string_view name = model.text(host.name[row]);
    const analyze::Phase phase = phases.host[row];
    const bool is_outside =
        phase != analyze::Phase::kBackward && phase != analyze::Phase::kOptimizer && phase != analyze::Phase::kData;
    const bool is_copying = is_outside && belongs(name);
    const bool is_averaging = is_outside && is_of_copies(model, row, run);
    const bool is_late = !run.ops.empty() && host.start_ns[row] - host.end_ns(run.last()) > kPauseInCopyNs;
    const bool is_next_model = run.loaded > 0 && makes_memory(name);
    if ((!is_copying && !is_averaging) || is_late || is_next_model) close();
    if (is_averaging && !run.ops.empty()) run.then.push_back(row);
    if (!is_copying) continue;
    if (!run.then.empty()) {
      run.then.push_back(row);
      run.loaded += name == "aten::copy_" ? 1 : 0;
      continue;
    }
    run.ops.push_back(row);
    run.made += makes_memory(name) ? 1 : 0;
    if (!copies_tensor(name)) continue;
    ++run.tensors;
    const std::vector<analyze::OpTensor> inputs = analyze::input_tensors(model, row);
    if (inputs.empty()) continue;
    run.bytes += inputs.back().bytes;
    run.shapes.insert(inputs[0].dims);
  }
  close();
  return runs;
}

std::vector<Finding> find_copied_modules(const Context& context) {
  if (context.study == nullptr || context.study->host->chains.empty()) return {};
  const std::vector<CopyRun> runs = copy_runs(context);
  if (static_cast<int64_t>(runs.size()) < context.step_count) return {};  // now and then: slow-steps tells it
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  // One call copies all of them into tensors that are kept: its way from Python to the device is a small part of this.
  constexpr double kOneCallLow = 0.15;
  constexpr double kOneCallHigh = 0.03;
  Evidence evidence(context);
  int64_t tensors = 0;
  int64_t bytes = 0;
  bool averaged = true;
  for (const CopyRun& run : runs) {
    averaged = averaged && run.is_averaged();
    tensors += run.tensors;
    bytes += run.bytes;
    int64_t from_ns = host.start_ns[run.ops.front()];
    for (const Row op : run.ops) {
      evidence.add_stretch(host.lane[op], from_ns, host.start_ns[op]);
      from_ns = host.end_ns(op);
      // The bytes are copied anyway, by the CPU in the operator itself. Of copies, two products, a sum and a copy back
      // one pass stays.
      const bool on_cpu = !context.has_device_work;
      const bool stays = on_cpu && copies_tensor(model.text(host.name[op]));
      if (on_cpu && run.is_averaged()) {
        evidence.add_call(op, 0.3, 0.1);
      } else {
        evidence.add_call(op, stays ? 0.8 : kOneCallLow, stays ? 0.4 : kOneCallHigh);
      }
    }
  }
  if (evidence.empty()) return {};
  Finding finding{
      .id = "copied-modules",
      .try_text =
          "keep one copy and overwrite it in one call; or copy only every few steps, if an older copy is good enough",
      .try_code = "torch._foreach_copy_(kept, list(model.parameters()))  # under torch.no_grad()",
      .confidence = Confidence::kMedium,
      .confirm_by = "leave the copies out of some steps",
      .cause = "whole-copies",
      .part_of = "overhead"};
  if (averaged) {
    finding.try_text = "average all weights in place in one call; nothing has to be copied";
    finding.try_code = "torch._foreach_lerp_(target_weights, weights, rate)  # under torch.no_grad()";
  }
  evidence.fill(finding);
  // What is between the operators, in Python's copy module, is most of it.
  int64_t spent_ns = 0;
  for (const CopyRun& run : runs)
    spent_ns += context.took_ns(host.start_ns[run.ops.front()], host.end_ns(run.ops.back()));
  finding.cost_ns = context.study->per_step(spent_ns);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.events = tensors;
  finding.title = std::string("a whole model is copied in every step (deepcopy, state_dict with clone)") +
                  (averaged ? " to average its weights: " : ": ") +
                  counted(context.study->per_step(tensors), "tensor", "tensors") + " one by one, " +
                  short_bytes(bytes / std::max<int64_t>(1, context.step_count)) + ", " +
                  short_percent(finding.share_of_step) + " of the step";
  finding.ranges.push_back({host.start_ns[runs[0].ops.front()], host.end_ns(runs[0].ops.back())});
  return {finding};
}

}  // namespace

std::vector<Rule> copied_modules_rules() {
  return {
      {"copied-modules", "waste", 0.04, true,
       "A model, or an optimizer's state, is copied whole in every step: copy.deepcopy(model.state_dict()), or a\n"
       "dict of clones. Each tensor gets new memory and its own copy, with Python in between, which takes far\n"
       "longer than moving the bytes.\n\n"
       "This finding covers runs of at least eight copies with nothing but allocations and views between them,\n"
       "outside forward, backward and optimizer step, in every step; and, together with them, averages of these\n"
       "tensors one by one that are loaded into another model (slowly updated target networks). Copies into tensors\n"
       "that are kept do not count. The gain is a replay in which the bytes are still copied, by one call.\n\n"
       "What to do: allocate the copies once and overwrite them with torch._foreach_copy_; copy now and then\n"
       "instead of in every step; an average of weights (EMA) is torch._foreach_lerp_.\n\n"
       "When not: earlier copies have to be kept as well.",
       find_copied_modules},
  };
}

}  // namespace firelane::advise
