#include "advise/gradient_use.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "advise/gradient_flow.h"
#include "advise/host_evidence.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

// Which of `steps`, in order, the moment is in; their number when in none.
size_t step_at(const std::vector<analyze::Interval>& steps, int64_t time_ns) {
  const auto step = std::partition_point(steps.begin(), steps.end(),
                                         [&](const analyze::Interval& each) { return each.end_ns <= time_ns; });
  return step == steps.end() || time_ns < step->start_ns ? steps.size() : static_cast<size_t>(step - steps.begin());
}

// The innermost lists of numbers in the text, in order: the shapes of all tensors, those in lists too.
std::vector<analyze::Dims> shapes_in(std::string_view json) {
  std::vector<analyze::Dims> out;
  for (size_t open = json.find('['); open != std::string_view::npos; open = json.find('[', open + 1)) {
    const size_t next = json.find_first_of("[]", open + 1);
    if (next == std::string_view::npos || json[next] != ']') continue;
    const std::vector<analyze::Dims> dims =
        analyze::parse_input_dims("[" + std::string(json.substr(open, next - open + 1)) + "]");
    if (!dims.empty() && !dims.front().empty()) out.push_back(dims.front());
  }
  return out;
}

// The text of the first input: "[[16, 8], [16]]" of a list of tensors, "[16, 8]" of one.
std::string_view first_input(std::string_view json) {
  const size_t begin = json.find('[', 1);
  int depth = 0;
  for (size_t at = begin; begin != std::string_view::npos && at < json.size(); ++at) {
    depth += json[at] == '[' ? 1 : json[at] == ']' ? -1 : 0;
    if (depth == 0) return json.substr(begin, at + 1 - begin);
  }
  return {};
}

// How many parameters of each shape the optimizer updates in a step: what one of its operators is called with most
// often. More than there are, where it calls the same operator twice for a parameter.
class Updates {
 public:
  void add(const Model& model, Row op, size_t step) {
    const std::string_view dims = input_dims_text(model, op);
    for (const analyze::Dims& shape : shapes_in(dims)) known_.insert(shape);
    // What does not fit into a recording is cut, and the type after it says so.
    const Row detail = model.op_detail(op);
    const StringId types = detail == kNoRow ? kNoString : model.op_details.input_types[detail];
    if (types != kNoString && contains(model.text(types), R"(["TensorList", "..."])")) cut_.insert(step);
    const std::string_view first = first_input(dims);
    for (const analyze::Dims& shape : shapes_in(first)) {
      int64_t& count = calls_[{step, shape, model.host_slices.name[op]}];
      int64_t& most = most_[{step, shape}];
      most = std::max(most, ++count);
    }
  }
  bool knows(const analyze::Dims& shape) const { return known_.contains(shape); }
  // INT64_MAX when it is not known, 0 when there was no update.
  int64_t most(size_t step, const analyze::Dims& shape) const {
    if (cut_.contains(step)) return INT64_MAX;
    const auto found = most_.find({step, shape});
    return found == most_.end() ? 0 : found->second;
  }

 private:
  std::set<analyze::Dims> known_;
  std::set<size_t> cut_;  // steps in which a list of parameters is not whole
  std::map<std::tuple<size_t, analyze::Dims, StringId>, int64_t> calls_;
  std::map<std::pair<size_t, analyze::Dims>, int64_t> most_;
};

// For `rows`, which accumulate gradients of one shape in one step: how many more there are in one backward pass than
// the `updates` of such parameters. Passes are parted by operators outside of them; several of them may each give the
// same parameters a gradient. In a step without an update gradients are kept for a later one.
int64_t too_many_in(const HostSlices& host, const std::vector<int64_t>& forward, const std::vector<Row>& rows,
                    int64_t updates) {
  if (updates == 0) return 0;
  std::map<std::ptrdiff_t, int64_t> by_pass;
  int64_t most = 0;
  for (const Row row : rows) {
    const auto pass = std::lower_bound(forward.begin(), forward.end(), host.start_ns[row]) - forward.begin();
    most = std::max(most, ++by_pass[pass]);
  }
  return by_pass.size() > 1 ? 0 : std::max<int64_t>(0, most - updates);
}

// Where in a backward pass stand weights of which is known whether an optimizer updates them, and those of shapes of
// which there are too many.
class Sides {
 public:
  void add(bool known, bool too_many, const analyze::Interval& when) {
    analyze::Interval& of = too_many ? unclear_ : known ? used_ : unused_;
    of = {std::min(of.start_ns, when.start_ns), std::max(of.end_ns, when.end_ns)};
  }
  // The pass goes from the loss to the first layers. Where all weights that are surely used come before the unclear
  // ones (a head), those nearest to the loss are its own, and those of the first layers (a body) are too many.
  bool is_body_unused() const {
    return used_.start_ns < unclear_.start_ns && used_.end_ns < unclear_.end_ns && unused_.start_ns > unclear_.start_ns;
  }

 private:
  analyze::Interval used_{INT64_MAX, INT64_MIN};
  analyze::Interval unused_{INT64_MAX, INT64_MIN};
  analyze::Interval unclear_{INT64_MAX, INT64_MIN};
};

}  // namespace

bool Gradients::is_unused(const analyze::Dims& shape, int64_t time_ns) const {
  if (unused.contains(shape)) return true;
  const auto some = too_many.find(shape);
  return some != too_many.end() && step_at(some->second, time_ns) < some->second.size();
}

std::vector<analyze::Interval> steps_of(const Context& context) {
  if (context.study == nullptr) return {context.window};
  std::vector<analyze::Interval> steps;
  for (const analyze::FoundStep& step : context.study->steps.steps) steps.push_back({step.start_ns, step.end_ns});
  return steps;
}

Gradients unused_gradients(const Context& context, const analyze::Phases& phases) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  if (std::optional<Gradients> followed = followed_gradients(context, phases)) return std::move(*followed);
  const std::vector<analyze::Interval> steps = steps_of(context);
  Updates updates;
  std::map<std::pair<size_t, analyze::Dims>, std::vector<Row>> accumulated;  // the first child of each node
  std::vector<int64_t> forward;  // starts of operators outside of backward passes
  Row last_node = kNoRow;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    const size_t step = step_at(steps, host.start_ns[row]);
    if (phases.host[row] == analyze::Phase::kOptimizer) updates.add(model, row, step);
    if (phases.host[row] == analyze::Phase::kForward && is_outermost_op(host, row)) {
      forward.push_back(host.start_ns[row]);
    }
    const Row parent = host.parent[row];
    const bool is_child = parent != kNoRow && contains(model.text(host.name[parent]), "AccumulateGrad");
    if (!is_child || contains(model.text(host.name[row]), "AccumulateGrad") || parent == last_node) continue;
    last_node = parent;
    const std::vector<analyze::Dims> dims = analyze::parse_input_dims(input_dims_text(model, row));
    if (!dims.empty() && !dims.front().empty()) accumulated[{step, dims.front()}].push_back(row);
  }
  std::sort(forward.begin(), forward.end());
  Gradients out;
  bool matches = false;
  std::map<size_t, Sides> sides;  // by step
  std::map<std::pair<size_t, analyze::Dims>, int64_t> extra;
  for (auto& [key, rows] : accumulated) {
    const auto& [step, shape] = key;
    std::sort(rows.begin(), rows.end(), [&](Row a, Row b) { return host.start_ns[a] < host.start_ns[b]; });
    const bool known = updates.knows(shape);
    matches = matches || (shape.size() > 1 && known);
    extra[key] = known ? too_many_in(host, forward, rows, updates.most(step, shape)) : 0;
    if (shape.size() < 2) continue;
    sides[step].add(known, extra[key] > 0, {host.start_ns[rows.front()], host.start_ns[rows.back()]});
  }
  const auto add_unused = [&](Row row) {
    ++out.count;
    Row node = host.parent[row];
    while (host.parent[node] != kNoRow && contains(model.text(host.name[host.parent[node]]), "AccumulateGrad")) {
      node = host.parent[node];
    }
    out.nodes.push_back(node);
  };
  for (const auto& [key, rows] : accumulated) {
    const auto& [step, shape] = key;
    if (!updates.knows(shape)) {
      out.unused.insert(shape);
      for (const Row row : rows) add_unused(row);
      continue;
    }
    const bool first_layers = sides[step].is_body_unused();
    // Many one-dimensional parameters (biases, norms) share a shape, and little is computed for them.
    const auto many = static_cast<size_t>(first_layers || shape.size() > 1 ? extra[key] : 0);
    const size_t begin = first_layers ? rows.size() - many : 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i < begin || i >= begin + many) {
        out.used.push_back(rows[i]);
      } else {
        add_unused(rows[i]);
      }
    }
    if (many == 0 || step >= steps.size()) continue;
    out.too_many[shape].push_back(
        first_layers
            ? analyze::Interval{begin == 0 ? steps[step].start_ns : host.start_ns[rows[begin - 1]], steps[step].end_ns}
            : analyze::Interval{steps[step].start_ns, host.start_ns[rows[many - 1]]});
  }
  if (!matches) return {};
  out.count /= std::max<int64_t>(1, context.step_count);
  out.passes = steps;
  return out;
}

}  // namespace firelane::advise
