// Constants that are recomputed: operators that start from numbers alone, with the same numbers every time.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "advise/evidence.h"
#include "advise/factories.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/host/host_time.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

namespace {

// A tensor made of numbers, and what is computed from it alone: each operator takes the result of the one before.
struct Derived {
  std::vector<Row> ops;
  analyze::Dims dims;  // of the result
  std::string what;    // operators, shapes and numbers: the same whenever it is computed again
  bool random = false;
};

class DerivedFinder {
 public:
  explicit DerivedFinder(const Context& context) : context_(context), model_(context.model) {}

  std::vector<Derived> all() {
    const HostSlices& host = model_.host_slices;
    const analyze::HostChain alone{.lanes = {context_.study->host->chains[0].lanes[0]}, .segments = {}};
    std::vector<Derived> out;
    Derived now;
    const auto close = [&] {
      // A tensor that nothing is computed from may be filled later.
      if (now.ops.size() > 1 && !now.random) out.push_back(std::move(now));
      now = {};
    };
    analyze::each_outermost(
        model_, alone, [&](Row row) { return host.kind[row] == HostKind::kOp; },
        [&](Row row) {
          if (!context_.in_window(host.start_ns[row])) return;
          const std::string_view name = model_.text(host.name[row]);
          if (is_factory(name)) {
            close();
            now.dims = made_dims(row);
            if (!now.dims.empty()) add(row, now);
          } else if (!now.ops.empty() && is_from(row, now.dims)) {
            now.random = now.random || is_random(name);
            add(row, now);
          } else {
            close();
          }
        });
    close();
    return out;
  }

 private:
  void add(Row row, Derived& now) const {
    const Row detail = model_.op_detail(row);
    const StringId numbers = detail == kNoRow ? kNoString : model_.op_details.concrete_inputs[detail];
    now.ops.push_back(row);
    now.what += std::string(model_.text(model_.host_slices.name[row])) + std::string(input_dims_text(model_, row)) +
                (numbers == kNoString ? "" : std::string(model_.text(numbers)));
  }

  // The shape that the factory asks memory for: of aten::empty inside of it.
  analyze::Dims made_dims(Row factory) const {
    const HostSlices& host = model_.host_slices;
    const Row lane_end = model_.lanes.host_end[static_cast<size_t>(host.lane[factory])];
    for (Row row = factory + 1; row < lane_end && host.start_ns[row] < host.end_ns(factory); ++row) {
      const std::string_view name = model_.text(host.name[row]);
      const Row detail = model_.op_detail(row);
      if (name != "aten::empty" || detail == kNoRow) continue;
      const StringId numbers = model_.op_details.concrete_inputs[detail];
      if (numbers == kNoString) return {};
      // ["[20000]", "7", ...]
      const std::string_view text = model_.text(numbers);
      const size_t open = text.find('[', 1);
      const size_t close = text.find(']', open == std::string_view::npos ? 0 : open);
      if (open == std::string_view::npos || close == std::string_view::npos) return {};
      const std::vector<analyze::Dims> dims =
          analyze::parse_input_dims("[" + std::string(text.substr(open, close + 1 - open)) + "]");
      return dims.empty() ? analyze::Dims{} : dims[0];
    }
    return {};
  }

  // Whether the op takes one tensor, of that shape, and numbers beside it.
  bool is_from(Row row, const analyze::Dims& dims) const {
    int tensors = 0;
    for (const analyze::OpTensor& input : analyze::input_tensors(model_, row)) {
      if (input.dims.empty()) continue;
      ++tensors;
      if (input.dims != dims) return false;
    }
    return tensors == 1;
  }

  const Context& context_;
  const Model& model_;
};

// As often in each step: samples that happen to have the same length are no constants.
bool is_in_every_step(const Context& context, const std::vector<Derived>& all) {
  size_t first_count = 0;
  auto each = all.begin();
  for (const analyze::FoundStep& step : context.study->steps.steps) {
    if (step.warm_up) continue;
    size_t count = 0;
    for (; each != all.end(); ++each) {
      const int64_t start_ns = context.model.host_slices.start_ns[each->ops.front()];
      if (start_ns >= step.end_ns) break;
      count += start_ns >= step.start_ns ? 1 : 0;
    }
    if (count == 0 || (first_count != 0 && count != first_count)) return false;
    first_count = count;
  }
  return first_count > 0;
}

std::vector<Finding> find_constant_work(const Context& context) {
  if (context.study == nullptr || context.study->host->chains.empty() || context.step_count < 2) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::map<std::string, std::vector<Derived>> by_what;
  for (Derived& each : DerivedFinder(context).all()) by_what[each.what].push_back(std::move(each));
  std::vector<int64_t> launches;  // of kernels
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (launch == kNoRow || model.device_slices.kind[row] != DeviceKind::kKernel) continue;
    launches.push_back(host.start_ns[launch]);
  }
  std::sort(launches.begin(), launches.end());
  // In a device's program, what the CPU computes for a copy is another finding.
  const auto runs_here = [&](const Derived& each) {
    if (!context.has_device_work) return true;
    const auto first = std::lower_bound(launches.begin(), launches.end(), host.start_ns[each.ops.front()]);
    return first != launches.end() && *first < host.end_ns(each.ops.back());
  };
  std::vector<Row> ops;
  const Derived* longest = nullptr;
  int64_t longest_ns = -1;
  int64_t times = 0;
  for (const auto& [what, all] : by_what) {
    if (!is_in_every_step(context, all)) continue;
    for (const Derived& each : all) {
      if (!runs_here(each)) continue;
      ++times;
      ops.insert(ops.end(), each.ops.begin(), each.ops.end());
      const int64_t ns = host.end_ns(each.ops.back()) - host.start_ns[each.ops.front()];
      if (ns <= longest_ns) continue;
      longest_ns = ns;
      longest = &each;
    }
  }
  if (longest == nullptr) return {};
  std::sort(ops.begin(), ops.end());
  Evidence evidence(context);
  if (context.has_device_work) {
    for (const Row row : launched_during(model, ops)) evidence.add_device(row, 0, 0);
  }
  constexpr double kKeepLow = 0.1;
  for (const Row op : ops) {
    if (context.has_device_work) {
      evidence.add_host(op, kKeepLow);
    } else {
      evidence.add_call(op, kKeepLow, 0);
    }
    evidence.add_way_to(op);
  }
  Finding finding{.id = "constant-work",
                  .try_text = "compute them once, before the loop, and keep them: they come from the same numbers",
                  .try_code = "self.register_buffer(\"mask\", torch.ones(n, n).triu(1))  # moves with the model",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "keep them, and compare results and step times",
                  .cause = "constant-work",
                  .part_of = "overhead"};
  evidence.fill(finding);
  finding.events = times;
  std::string names;
  constexpr size_t kNamed = 3;
  for (size_t i = 0; i < std::min(kNamed, longest->ops.size()); ++i) {
    names += (i == 0 ? "" : ", ") + std::string(model.text(host.name[longest->ops[i]]));
  }
  finding.title = "the same tensors are computed again from the same numbers, " +
                  counted(context.study->per_step(times), "time", "times") + " a step (" + names +
                  (longest->ops.size() > kNamed ? ", ..." : "") + "): " + short_percent(finding.share_of_step) +
                  " of it";
  return {finding};
}

}  // namespace

std::vector<Rule> constant_work_rules() {
  return {
      {"constant-work", "waste", 0.04, true,
       "A tensor is created from numbers (linspace, arange, ones, hann_window) and others are computed from it,\n"
       "with the same numbers in every step: a noise schedule, a mask, a filter bank, position frequencies. The\n"
       "result is the same every time.\n\n"
       "This finding covers chains of operators in which the first takes only numbers, and each of the others takes\n"
       "numbers and one tensor with the shape of the previous result; with the same names, shapes and numbers\n"
       "equally often in every step. Random operators do not count, nor does a tensor that nothing is computed\n"
       "from: it may be filled later. Needs shapes. The gain is a replay without them. Tensors that the CPU builds\n"
       "and copies to the device are `constant-copies`.\n\n"
       "What to do: compute it once and keep it: register_buffer in a module, functools.cache for a few sizes.\n\n"
       "When not: the tensor is large, and memory matters more than time.",
       find_constant_work},
  };
}

}  // namespace firelane::advise
