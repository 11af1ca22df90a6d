// Work that every step repeats on tensors that no step changes.
//
// A recording of a benchmark shows the same batch in every step, and everything computed from it alone looks unchanged.
// In training, the batch is recognized by a dimension that it shares with the loss, and by lookups. Without training it
// cannot be recognized, and only one case is reported: a matrix that never changes is decomposed in every step, for
// something that changes from step to step and includes the batch.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "advise/evidence.h"
#include "advise/factories.h"
#include "advise/host_evidence.h"
#include "advise/op_facts.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/common/intervals.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/ops/tensor_flow.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/same_values.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

// Where a layer takes what it is applied to; its other inputs are weights.
bool is_layer_op(std::string_view name) {
  for (const std::string_view part : {"aten::linear", "conv", "norm", "embedding", "lstm", "gru", "encoder_layer"}) {
    if (contains(name, part) && !contains(name, "linalg")) return true;
  }
  return false;
}
size_t data_place(std::string_view name) { return contains(name, "aten::embedding") ? 1 : 0; }

// Casts, and numbers that are read, which other findings know better.
bool computes_nothing(std::string_view name) {
  for (const std::string_view each :
       {"aten::to", "aten::_to_copy", "aten::item", "aten::is_nonzero", "aten::lift_fresh"}) {
    if (name == each) return true;
  }
  return false;
}

// Takes a part of what it is given, as a batch is taken of all samples.
bool looks_up_part(std::string_view name) {
  for (const std::string_view each : {"aten::index", "aten::index_select", "aten::gather", "aten::take"}) {
    if (name == each) return true;
  }
  return false;
}

// Costs as much as many products, and is made to be used often.
bool decomposes(std::string_view name) {
  if (contains(name, "solve") || contains(name, "backward")) return false;
  for (const std::string_view part : {"cholesky", "linalg_inv", "aten::inverse", "pinv", "svd", "eig", "linalg_qr",
                                      "linalg_lu", "matrix_exp", "ldl_factor"}) {
    if (contains(name, part)) return true;
  }
  return false;
}

// What is computed again from step to step and does not come of what may be a batch.
class UnchangedFinder {
 public:
  UnchangedFinder(const Context& context, const analyze::SameValues& same)
      : context_(context), model_(context.model), phases_(context.trace.get<analyze::find_phases>()) {
    same_.reserve(same.every_step.size() + same.in_step.size() + same.written.size());
    for (const analyze::SameValue& each : same.every_step) same_.push_back({&each, true});
    for (const analyze::SameValue& each : same.in_step) same_.push_back({&each, false});
    for (const analyze::SameValue& each : same.written) same_.push_back({&each, false});
    // Makers come before those that take their results.
    const auto& start_ns = model_.host_slices.start_ns;
    std::sort(same_.begin(), same_.end(), [&](const Same& a, const Same& b) {
      return start_ns[a.value->op] != start_ns[b.value->op] ? start_ns[a.value->op] < start_ns[b.value->op]
                                                            : a.value->op < b.value->op;
    });
    see_losses();
  }

  std::vector<Row> all() const {
    std::unordered_set<Row> of_batch;
    std::vector<const analyze::SameValue*> found;
    for (const Same& same : same_) {
      const analyze::SameValue& each = *same.value;
      const bool is_of_batch = takes_batch(each) || std::any_of(each.makers.begin(), each.makers.end(),
                                                                [&](Row maker) { return of_batch.contains(maker); });
      if (is_of_batch) {
        of_batch.insert(each.op);
      } else if (same.is_every_step) {
        found.push_back(&each);
      }
    }
    return with_others(in_every_step(std::move(found)));
  }

  // Decompositions of what does not change that are used for what does, with what makes the matrix and what else is
  // made of unchanged factors.
  std::vector<Row> decomposed() const {
    std::unordered_map<Row, const Same*> by_op;
    for (const Same& same : same_) by_op[same.value->op] = &same;
    std::vector<const analyze::SameValue*> of_factors;  // they, and what is made of them
    std::unordered_set<Row> taken;
    for (const Same& same : same_) {
      const analyze::SameValue& each = *same.value;
      const bool takes_factors =
          std::any_of(each.makers.begin(), each.makers.end(), [&](Row maker) { return taken.contains(maker); });
      if (!same.is_every_step || (!takes_factors && !decomposes(name_of_op(model_, each.op)))) continue;
      of_factors.push_back(&each);
      taken.insert(each.op);
    }
    of_factors = in_every_step(std::move(of_factors));
    taken.clear();
    for (const analyze::SameValue* each : of_factors) taken.insert(each->op);
    if (!meets_changes(taken, by_op)) return {};
    // What makes the matrix.
    std::vector<const analyze::SameValue*> all = of_factors;
    for (size_t i = 0; i < all.size(); ++i) {
      for (const Row maker : all[i]->makers) {
        const auto found = by_op.find(maker);
        if (found != by_op.end() && taken.insert(maker).second) all.push_back(found->second->value);
      }
    }
    return with_others(all);
  }

 private:
  struct Same {
    const analyze::SameValue* value;
    bool is_every_step;
  };

  // Whether an operator whose result is another one in each step reads what one of these made.
  bool meets_changes(const std::unordered_set<Row>& ops, const std::unordered_map<Row, const Same*>& same) const {
    const HostSlices& host = model_.host_slices;
    std::vector<analyze::Interval> makers;
    for (const Row op : ops) makers.push_back({host.start_ns[op], host.end_ns(op)});
    const analyze::IntervalSet making(std::move(makers));
    const analyze::TensorFlow flow(model_);
    for (Row row = 0; row < host.size(); ++row) {
      if (!is_outermost_op(host, row) || !context_.in_window(host.start_ns[row]) || same.contains(row)) continue;
      if (analyze::is_view_op(name_of_op(model_, row)) || ops.contains(row)) continue;
      const std::vector<analyze::TensorFlow::Input> inputs = flow.inputs_of(row);
      // The first judged step has none before it.
      const auto is_new = [&](const auto& input) {
        return input.made_ns != kNoNumber && context_.in_window(input.made_ns) &&
               making.covered_ns(input.made_ns, input.made_ns + 1) == 0;
      };
      const auto is_made = [&](const auto& input) {
        return input.made_ns != kNoNumber && making.covered_ns(input.made_ns, input.made_ns + 1) > 0;
      };
      if (std::any_of(inputs.begin(), inputs.end(), is_made) && std::any_of(inputs.begin(), inputs.end(), is_new))
        return true;
    }
    return false;
  }

  void see_losses() {
    const HostSlices& host = model_.host_slices;
    for (Row row = 0; row < host.size(); ++row) {
      if (host.kind[row] != HostKind::kOp || phases_.host[row] == analyze::Phase::kBackward) continue;
      const std::string_view name = name_of_op(model_, row);
      if (!contains(name, "_loss") && !contains(name, "cross_entropy") && !contains(name, "kl_div")) continue;
      for (const analyze::Dims& each : shapes_of_op(model_, row)) {
        if (!each.empty() && each[0] > 1) batch_sizes_.insert(each[0]);
      }
    }
  }

  bool takes_batch(const analyze::SameValue& each) const {
    const std::string_view name = name_of_op(model_, each.op);
    if (looks_up_part(name)) return true;
    const std::vector<analyze::Dims> shapes = shapes_of_op(model_, each.op);
    return std::any_of(each.from_before.begin(), each.from_before.end(), [&](size_t place) {
      const bool is_weight = is_layer_op(name) && place != data_place(name);
      if (is_weight || place >= shapes.size() || shapes[place].empty()) return false;
      const analyze::Dims& dims = shapes[place];
      // If a whole graph is one batch, the matrix of its edges does not count as a batch.
      const bool is_square = dims.size() == 2 && dims[0] == dims[1] && !is_layer_op(name);
      const auto elements = static_cast<int64_t>(std::clamp(elements_of(dims), 0.0, 9e18));
      const bool has_its_size = batch_sizes_.contains(dims[0]) || batch_sizes_.contains(elements);
      return !is_square && (has_its_size || batch_sizes_.empty());
    });
  }

  // The first judged step, which has none before it, and what is made of numbers alone: it has no inputs to compare,
  // and is the same where what is computed of it is.
  std::vector<Row> with_others(const std::vector<const analyze::SameValue*>& found) const {
    std::set<Row> all;
    for (const analyze::SameValue* each : found) {
      all.insert(each->op);
      if (context_.in_window(model_.host_slices.start_ns[each->first])) all.insert(each->first);
      for (const Row maker : each->makers) {
        if (is_factory(name_of_op(model_, maker))) all.insert(maker);
      }
    }
    return {all.begin(), all.end()};
  }

  // Those that each judged step has, or all but the first.
  std::vector<const analyze::SameValue*> in_every_step(std::vector<const analyze::SameValue*> found) const {
    std::map<std::pair<StringId, std::string_view>, std::set<size_t>> seen_in;
    const auto& steps = context_.study->steps.steps;
    const auto step_of = [&](Row op) {
      const int64_t start_ns = model_.host_slices.start_ns[op];
      const auto step = std::partition_point(steps.begin(), steps.end(),
                                             [&](const analyze::FoundStep& each) { return each.end_ns <= start_ns; });
      return static_cast<size_t>(step - steps.begin());
    };
    const auto key = [&](Row op) { return std::pair(model_.host_slices.name[op], input_dims_text(model_, op)); };
    for (const analyze::SameValue* each : found) seen_in[key(each->op)].insert(step_of(each->op));
    const auto judged = static_cast<size_t>(
        std::count_if(steps.begin(), steps.end(), [](const analyze::FoundStep& step) { return !step.warm_up; }));
    std::erase_if(found, [&](const analyze::SameValue* each) { return seen_in[key(each->op)].size() + 1 < judged; });
    return found;
  }

  const Context& context_;
  const Model& model_;
  const analyze::Phases& phases_;
  std::vector<Same> same_;
  std::set<int64_t> batch_sizes_;
};

std::vector<Finding> find_unchanged_work(const Context& context) {
  if (context.study == nullptr || context.study->host->chains.empty() || context.step_count < 2) return {};
  const Model& model = context.model;
  const auto& phases = context.trace.get<analyze::find_phases>();
  const auto& same = context.trace.get<analyze::find_same_values>();
  if (!same.is_known || same.every_step.empty()) return {};
  const UnchangedFinder finder(context, same);
  const std::vector<Row> ops = phases.has_backward ? finder.all() : finder.decomposed();
  if (ops.empty() ||
      std::all_of(ops.begin(), ops.end(), [&](Row op) { return computes_nothing(name_of_op(model, op)); }))
    return {};
  Evidence evidence(context);
  constexpr double kStays = 0.05;  // at worst
  for (const Row op : ops) {
    if (context.has_device_work) {
      evidence.add_host(op, kStays);
    } else {
      evidence.add_call(op, kStays, 0);
    }
    evidence.add_way_to(op);
  }
  if (context.has_device_work) {
    for (const Row work : launched_during(model, ops)) evidence.add_device(work, 0, 0);
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "unchanged-work",
                  .try_text = "compute it once before the loop, and keep the result: its inputs do not change",
                  .try_code = "edges = normalized(adjacency)  # before the loop over steps, not inside it",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "keep the result, and compare outputs and step times",
                  .cause = "unchanged-work",
                  .part_of = "overhead",
                  .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  finding.events = static_cast<int64_t>(ops.size());
  std::string names;
  std::vector<std::string_view> named;
  constexpr size_t kNamed = 3;
  for (const Row op : ops) {
    const std::string_view name = name_of_op(model, op);
    if (std::find(named.begin(), named.end(), name) == named.end()) named.push_back(name);
  }
  for (size_t i = 0; i < std::min(kNamed, named.size()); ++i) names += (i == 0 ? "" : ", ") + std::string(named[i]);
  const auto size_of = [&](Row op) {
    double size = 0;
    for (const analyze::Dims& each : shapes_of_op(model, op))
      size = std::max(size, each.empty() ? 0 : elements_of(each));
    return size;
  };
  const Row largest = *std::max_element(ops.begin(), ops.end(), [&](Row a, Row b) { return size_of(a) < size_of(b); });
  finding.title = "every step recomputes the same from tensors that no step changes (" + names +
                  (named.size() > kNamed ? ", ..." : "") + "; the largest with inputs of " +
                  shapes_text_of_op(model, largest) + "): " + short_percent(finding.share_of_step) + " of a step";
  add_longest(finding, model, ops);
  return {finding};
}

}  // namespace

std::vector<Rule> unchanged_rules() {
  return {
      {"unchanged-work", "waste", 0.05, true,
       "A part of every step gives the same result as in the step before, because none of its inputs has changed:\n"
       "an adjacency matrix that is normalized in every step, features of a style image, frozen weights that are\n"
       "scaled again.\n\n"
       "Detected where the recording follows tensors (firelane record does), with the same ids of values as in\n"
       "`repeated-inputs`, from step to step: operators of the forward pass whose inputs were created before the\n"
       "recording, or derived only from such tensors, and have not been written since. A benchmark that reuses one\n"
       "batch recomputes the same values in every step, too: tensors whose first dimension is that of the loss, and\n"
       "lookups, are assumed to be the batch, and what is derived from them is excluded. In programs without a\n"
       "backward pass, only matrices that are decomposed in every step count (Cholesky factors, inverses,\n"
       "eigenvalues), if the result is combined with something that changes from step to step. The gain is a replay\n"
       "without these operators.\n\n"
       "What to do: compute it before the loop, and keep it (register_buffer in a module).\n\n"
       "When not: the program changes these tensors later than in the recorded steps, or the result is too large to\n"
       "keep.",
       find_unchanged_work},
  };
}

}  // namespace firelane::advise
