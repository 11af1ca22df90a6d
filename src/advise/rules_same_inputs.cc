// Parts of a program that run again on the same, unchanged inputs.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "advise/evidence.h"
#include "advise/factories.h"
#include "advise/gain.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/same_inside.h"
#include "advise/text.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/same_values.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

constexpr double kStaysAtWorst = 0.05;

// What a model is made of; casts, copies and fills by themselves have other findings.
bool is_layer(std::string_view name) {
  for (const std::string_view part :
       {"linear", "matmul", "::mm", "addmm", "bmm", "conv", "norm", "attention", "embedding", "softmax",
        "encoder_layer", "lstm", "gru", "einsum", "fft", "cdist", "sort"}) {
    if (contains(name, part)) return true;
  }
  return false;
}

// Computes what it makes, and does not only write it in another way.
bool computes(std::string_view name) {
  for (const std::string_view part : {"copy", "clone", "contiguous", "::to", "fill", "zeros", "ones", "full", "cat",
                                      "stack", "arange", "item", "lift_fresh", "nonzero", "is_", "equal"}) {
    if (contains(name, part)) return false;
  }
  return true;
}

// Says nothing by itself of whether what stands around it was there before: it has no inputs, or writes what another
// one made.
bool is_neutral(std::string_view name) {
  const bool writes = name.starts_with("aten::") && name.ends_with('_') && !contains(name, "foreach");
  const bool makes = is_factory(name) || name.starts_with("aten::new_") || name.ends_with("s_like");
  return analyze::is_view_op(name) || name == "aten::to" || makes || writes;
}

// Operators in a row that were all there before, with what is neutral between them.
struct SameRun {
  std::vector<Row> ops;
  bool has_layer = false;
  int64_t computing = 0;
};

class SameRunFinder {
 public:
  SameRunFinder(const Context& context, const std::vector<analyze::SameValue>& same)
      : context_(context), host_(context.model.host_slices) {
    for (const analyze::SameValue& each : same) again_.insert(each.op);
  }

  std::vector<SameRun> all() const {
    std::vector<SameRun> runs;
    const Model& model = context_.model;
    for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
      SameRun run;
      std::vector<Row> views;
      const auto close = [&] {
        constexpr int64_t kSeveral = 4;  // without a layer among them
        if (run.has_layer || run.computing >= kSeveral) runs.push_back(std::move(run));
        run = {};
        views.clear();
      };
      for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
        if (!is_outermost_op(host_, row)) continue;
        const std::string_view name = model.text(host_.name[row]);
        if (again_.contains(row)) {
          if (!run.ops.empty()) run.ops.insert(run.ops.end(), views.begin(), views.end());
          views.clear();
          run.ops.push_back(row);
          run.has_layer = run.has_layer || is_layer(name);
          run.computing += computes(name) ? 1 : 0;
        } else if (is_neutral(name)) {
          views.push_back(row);
        } else {
          close();
        }
      }
      close();
    }
    return runs;
  }

 private:
  const Context& context_;
  const HostSlices& host_;
  std::unordered_set<Row> again_;
};

// Also those inside of operators that are no repetition themselves.
std::vector<SameRun> all_runs(const Context& context, const std::vector<analyze::SameValue>& same) {
  std::vector<SameRun> runs = SameRunFinder(context, same).all();
  std::unordered_set<Row> known;
  for (const SameRun& run : runs) known.insert(run.ops.begin(), run.ops.end());
  for (const Row op : same_inside(context, is_layer)) {
    if (!known.contains(outermost_op(context.model, op))) runs.push_back({.ops = {op}, .has_layer = true});
  }
  return runs;
}

// Nodes of the backward pass that these operators made: they have their numbers.
std::vector<Row> nodes_of(const Context& context, const std::vector<Row>& ops) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const auto number_of = [&](Row op) {
    const Row detail = model.op_detail(op);
    const int64_t number = detail == kNoRow ? kNoNumber : model.op_details.sequence_number[detail];
    return number == kNoNumber ? -1 : number;
  };
  const auto& phases = context.trace.get<analyze::find_phases>();
  std::vector<Row> nodes;
  if (!phases.has_backward) return nodes;
  std::unordered_set<int64_t> numbers;
  for (const Row op : ops) {
    for (Row row = op; row < host.size() && host.lane[row] == host.lane[op] && host.start_ns[row] < host.end_ns(op);
         ++row) {
      if (host.kind[row] == HostKind::kOp && number_of(row) >= 0) numbers.insert(number_of(row));
    }
  }
  for (Row row = 0; row < host.size(); ++row) {
    if (!is_outermost_op(host, row) || !context.in_window(host.start_ns[row])) continue;
    if (phases.host[row] == analyze::Phase::kBackward && numbers.contains(number_of(row))) nodes.push_back(row);
  }
  return nodes;
}

void add(const Context& context, const std::vector<Row>& ops, Evidence& evidence) {
  for (const Row op : ops) {
    if (context.has_device_work) {
      evidence.add_host(op, kStaysAtWorst);
    } else {
      evidence.add_call(op, kStaysAtWorst, 0);
    }
    evidence.add_way_to(op);
  }
  if (!context.has_device_work) return;
  for (const Row work : launched_during(context.model, ops)) evidence.add_device(work, 0, 0);
}

std::string names_of_run(const Model& model, const std::vector<Row>& ops) {
  constexpr size_t kNamed = 3;
  std::vector<std::string_view> names;
  for (const Row op : ops) {
    const std::string_view name = model.text(model.host_slices.name[op]);
    if (!analyze::is_view_op(name) && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (size_t i = 0; i < std::min(kNamed, names.size()); ++i) text += (i == 0 ? "" : ", ") + std::string(names[i]);
  return text + (names.size() > kNamed ? ", ..." : "");
}

std::vector<Finding> find_repeated_inputs(const Context& context) {
  if (context.study == nullptr || context.study->host->chains.empty()) return {};
  const auto& same = context.trace.get<analyze::find_same_values>();
  if (!same.is_known) return {};
  const std::vector<SameRun> runs = all_runs(context, same.in_step);
  std::vector<Row> ops;
  const SameRun* longest = nullptr;
  const HostSlices& host = context.model.host_slices;
  int64_t longest_ns = -1;
  for (const SameRun& run : runs) {
    ops.insert(ops.end(), run.ops.begin(), run.ops.end());
    const int64_t ns = host.end_ns(run.ops.back()) - host.start_ns[run.ops.front()];
    if (ns <= longest_ns) continue;
    longest_ns = ns;
    longest = &run;
  }
  if (longest == nullptr) return {};
  const bool only_calls = std::none_of(runs.begin(), runs.end(), [](const SameRun& run) { return run.has_layer; });
  const Context calls = only_calls ? with_true_calls(context) : context;
  Evidence evidence(calls);
  add(context, ops, evidence);
  add(context, nodes_of(context, ops), evidence);
  if (evidence.empty()) return {};
  Finding finding{.id = "repeated-inputs",
                  .try_text = "compute it once and keep the result as long as its inputs stay the same",
                  .try_code = "prompt = encoder(words)  # before the loop, not inside it",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "keep the result, and compare outputs and step times",
                  .cause = "repeated-inputs",
                  .part_of = "overhead",
                  .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  finding.of_step_ns = calls.step_ns;
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.events = static_cast<int64_t>(runs.size());
  finding.title = "the same operators run again on unchanged inputs, " +
                  counted(context.study->per_step(static_cast<int64_t>(runs.size())), "time", "times") + " a step (" +
                  names_of_run(context.model, longest->ops) + "): " + short_percent(finding.share_of_step) + " of it";
  finding.ranges.push_back({host.start_ns[longest->ops.front()], host.end_ns(longest->ops.back())});
  return {finding};
}

}  // namespace

std::vector<Rule> same_inputs_rules() {
  return {
      {"repeated-inputs", "waste", 0.05, true,
       "A part of the program runs again in the same step on inputs and weights that have not changed since: a\n"
       "prompt that is encoded in every iteration of a sampler, a solver that recomputes earlier stages, features\n"
       "of the same image for every question. The result is the same.\n\n"
       "Detected where the recording follows tensors (firelane record does): each tensor's value gets an id,\n"
       "derived from the operator, its shapes, its numeric arguments and the ids of its inputs, which changes when\n"
       "an operator writes in place. If operators compute a value a second time in a step, runs of them that\n"
       "contain a layer, or at least four that compute something, count, together with their backward nodes. So\n"
       "does work inside other operators: each of several quantiles of one tensor sorts it again. Random operators,\n"
       "results that are changed later, and programs with compiled parts or CUDA graphs are excluded. The gain is a\n"
       "replay without the repetitions.\n\n"
       "What to do: move it out of the loop, or keep the result.\n\n"
       "When not: something that no operator shows changes an input (NumPy on the same memory), or the result is too\n"
       "large to keep.",
       find_repeated_inputs},
  };
}

}  // namespace firelane::advise
