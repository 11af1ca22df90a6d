// What stands out without a rule of its own: one operator or kernel, or operators on one size of tensors, that take
// most of a step.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "advise/dominant_words.h"
#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/notes.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "advise/unchanged_sort.h"
#include "analyze/compute/roofline.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"

namespace firelane::advise {

namespace {

using analyze::KernelClass;

// One of an operator's calls in a step has at least this part of its time.
constexpr double kMostOfIt = 0.6;

// Share of a step: what should seldom take so much (sorting, indexing, joining tensors) is named from here on, others
// from kLargeShare on.
constexpr double kSeldomShare = 0.25;
constexpr double kLargeShare = 0.4;
constexpr double kBlownUp = 4;  // a broadcast makes a tensor so many times larger than its inputs

// One name's time in the judged steps.
struct Share {
  int64_t total_ns = 0;
  Row longest = kNoRow;  // of host_slices or device_slices
  int64_t longest_ns = -1;
  std::vector<Row> rows;
};

template <typename Rows>
const Share* largest_of(const Rows& shares, StringId& name) {
  const Share* largest = nullptr;
  for (const auto& [each, share] : shares) {
    if (largest != nullptr && share.total_ns <= largest->total_ns) continue;
    largest = &share;
    name = each;
  }
  return largest;
}

// Which of an operator's calls in a step takes most of its time: 1 for the first; 0 when none does.
size_t place_in_step(const Context& context, const std::map<Row, int64_t>& time_of, size_t& calls_a_step) {
  const HostSlices& host = context.model.host_slices;
  std::vector<std::pair<int64_t, int64_t>> calls_by_time;  // start, time
  for (const auto& [row, ns] : time_of) calls_by_time.emplace_back(host.start_ns[row], ns);
  std::sort(calls_by_time.begin(), calls_by_time.end());
  std::vector<int64_t> by_place;
  int64_t total_ns = 0;
  int64_t steps = 0;
  int64_t calls = 0;
  auto call = calls_by_time.begin();
  for (const analyze::FoundStep& step : context.study->steps.steps) {
    if (step.warm_up) continue;
    ++steps;
    while (call != calls_by_time.end() && call->first < step.start_ns) ++call;
    for (size_t place = 0; call != calls_by_time.end() && call->first < step.end_ns; ++call, ++place, ++calls) {
      if (place == by_place.size()) by_place.push_back(0);
      by_place[place] += call->second;
      total_ns += call->second;
    }
  }
  calls_a_step = by_place.size();
  if (by_place.size() < 2 || calls != steps * static_cast<int64_t>(by_place.size())) return 0;
  const auto most = std::max_element(by_place.begin(), by_place.end());
  const bool stands_out = static_cast<double>(*most) >= kMostOfIt * static_cast<double>(total_ns);
  return stands_out ? static_cast<size_t>(most - by_place.begin()) + 1 : 0;
}

std::string ordinal(size_t number) {
  const char* end = number % 100 / 10 == 1 ? "th"
                    : number % 10 == 1     ? "st"
                    : number % 10 == 2     ? "nd"
                    : number % 10 == 3     ? "rd"
                                           : "th";
  return std::to_string(number) + end;
}

// The largest tensor that a broadcast of the op's inputs makes, if it is much larger than each of them; {} otherwise.
analyze::Dims blown_up(const std::vector<analyze::OpTensor>& inputs) {
  analyze::Dims result;
  int64_t largest = 0;
  for (const analyze::OpTensor& input : inputs) {
    largest = std::max(largest, input.elements);
    if (input.dims.size() > result.size()) result.insert(result.begin(), input.dims.size() - result.size(), 1);
    for (size_t i = 0; i < input.dims.size(); ++i) {
      int64_t& size = result[result.size() - input.dims.size() + i];
      if (size != 1 && input.dims[i] != 1 && size != input.dims[i]) return {};
      size = std::max(size, input.dims[i]);
    }
  }
  double elements = 1;
  for (const int64_t size : result) elements *= static_cast<double>(size);
  return largest > 0 && elements >= kBlownUp * static_cast<double>(largest) ? result : analyze::Dims{};
}

std::string text_of(const analyze::Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text + "]";
}

// Operators on a tensor that a broadcast wrote out, backward included: many times what its inputs are.
std::vector<Finding> find_blown_up(const Context& context, int64_t window_ns) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const analyze::HostChain& chain = context.study->host->chains[0];
  std::map<analyze::Dims, Row> made;  // by the operator that makes it
  std::vector<Row> elementwise;
  for (const LaneId lane : chain.lanes) {
    const auto l = static_cast<size_t>(lane);
    for (Row row = model.lanes.host_begin[l]; row < model.lanes.host_end[l]; ++row) {
      if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
      const KernelClass what = analyze::op_class(model.text(host.name[row]));
      if (what != KernelClass::kPointwise && what != KernelClass::kReduction) continue;
      elementwise.push_back(row);
      const analyze::Dims result = blown_up(analyze::input_tensors(model, row));
      if (!result.empty()) made.emplace(result, row);
    }
  }
  std::map<analyze::Dims, Share> shares;
  std::unordered_set<Row> counted_ops;
  for (const Row row : elementwise) {
    const std::vector<analyze::OpTensor> inputs = analyze::input_tensors(model, row);
    analyze::Dims of = blown_up(inputs);
    for (const analyze::OpTensor& input : inputs) {
      if (made.contains(input.dims)) of = input.dims;
    }
    if (!made.contains(of)) continue;
    Share& share = shares[of];
    // One that another of them calls counts with that.
    const bool is_within = host.parent[row] != kNoRow && counted_ops.contains(host.parent[row]);
    counted_ops.insert(row);
    if (is_within) continue;
    share.total_ns += context.took_ns(row);
    share.rows.push_back(row);
  }
  const auto largest = std::max_element(
      shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.second.total_ns < b.second.total_ns; });
  if (largest == shares.end()) return {};
  const double part = static_cast<double>(largest->second.total_ns) / static_cast<double>(window_ns);
  if (part < kLargeShare) return {};
  const Row maker = made.at(largest->first);
  const std::string caller = caller_of(model, maker);
  Finding finding{.id = "dominant-operator",
                  .share_of_step = part,
                  .confidence = Confidence::kMedium,
                  .precedence = Precedence::kNamed};
  finding.cost_ns = static_cast<int64_t>(part * static_cast<double>(context.step_ns));
  finding.events = static_cast<int64_t>(largest->second.rows.size());
  finding.title = "operators on a tensor of " + text_of(largest->first) + " take " + short_percent(part) +
                  " of a step: " + std::string(model.text(host.name[maker])) + " makes it of " +
                  dims_text(model, maker) + (caller.empty() ? "" : ", in " + caller);
  finding.try_text =
      "a product instead of a broadcast that is summed afterwards: distances are |a|^2 - 2 a b + |b|^2, and "
      "torch.cdist "
      "does it; or process it in parts";
  finding.try_code = "d = torch.cdist(a, b)  # instead of (a[:, None] - b[None]).square().sum(-1)";
  add_longest(finding, model, largest->second.rows);
  finding.confirm_by = "time it alone with these sizes";
  // A product of its inputs takes their place, which computes as much without writing it out.
  constexpr double kProductLow = 0.15;
  constexpr double kProductHigh = 0.02;
  Evidence evidence(context);
  for (const Row row : largest->second.rows) {
    evidence.add_call(row, kProductLow, kProductHigh);
    evidence.add_way_to(row);
  }
  promise(context, evidence, finding);
  return {finding};
}

// Without a device: operators by the time in themselves.
std::vector<Finding> find_dominant_op(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const analyze::HostChain& chain = context.study->host->chains[0];
  std::map<StringId, std::map<Row, int64_t>> times;
  int64_t window_ns = 0;
  for (size_t i = chain.segment_after(context.window.start_ns); i < chain.segments.size(); ++i) {
    const analyze::HostSegment& segment = chain.segments[i];
    if (segment.start_ns >= context.window.end_ns) break;
    const int64_t ns =
        std::min(segment.end_ns, context.window.end_ns) - std::max(segment.start_ns, context.window.start_ns);
    if (segment.activity != analyze::Activity::kNoCore) window_ns += ns;
    if (segment.activity == analyze::Activity::kOp) times[host.name[segment.slice]][segment.slice] += ns;
  }
  std::map<StringId, Share> shares;
  for (const auto& [name, rows] : times) {
    Share& share = shares[name];
    for (const auto& [row, ns] : rows) {
      share.total_ns += ns;
      share.rows.push_back(row);
      if (ns > share.longest_ns) {
        share.longest_ns = ns;
        share.longest = row;
      }
    }
  }
  if (window_ns == 0) return {};
  StringId name = kNoString;
  const Share* largest = nullptr;
  size_t place = 0;
  size_t calls = 0;
  for (const auto& [each, share] : shares) {
    const std::string_view text = model.text(each);
    const double least = looks_up(text) || joins(text) ? kSeldomShare : kLargeShare;
    if (static_cast<double>(share.total_ns) < least * static_cast<double>(window_ns)) continue;
    if (largest != nullptr && share.total_ns <= largest->total_ns) continue;
    size_t calls_here = 0;
    const size_t place_here = place_in_step(context, times[each], calls_here);
    if (place_here == 0 && is_meant_to_dominate(analyze::op_class(text))) continue;
    largest = &share;
    name = each;
    place = place_here;
    calls = calls_here;
  }
  if (largest == nullptr) return find_blown_up(context, window_ns);
  const double part = static_cast<double>(largest->total_ns) / static_cast<double>(window_ns);
  Finding finding{.id = "dominant-operator",
                  .share_of_step = part,
                  .confidence = Confidence::kMedium,
                  .precedence = Precedence::kNamed};
  finding.cost_ns = static_cast<int64_t>(part * static_cast<double>(context.step_ns));
  finding.events = static_cast<int64_t>(largest->rows.size());
  const std::string text(model.text(name));
  const std::string caller = caller_of(model, largest->longest);
  const std::string dims = dims_text(model, largest->longest);
  finding.title =
      text + " takes " + short_percent(part) + " of a step" + (caller.empty() ? "" : ", most in " + caller) +
      (place == 0 ? "" : ": the " + ordinal(place) + " of its " + std::to_string(calls) + " calls in a step") +
      (dims.empty() ? "" : ", with inputs of " + dims);
  const Advice advice = advice_for(analyze::op_class(text), text);
  finding.try_text = std::string("it may be ") + advice.could_be;
  finding.try_code = advice.code;
  if (finding.try_code == kCompile && (is_compile_broken(model) || is_compiled(model)))
    advise_fusing(model, advice.could_be, finding);
  add_longest(finding, model, largest->rows);
  finding.confirm_by = dims.empty() ? "record with shapes, to see what it works on"
                       : caller.empty() && !knows_lines(context)
                           ? "record with " + context.flag(RecordOption::kLines) + ", to see the line"
                           : "time it alone with these sizes";
  if (sorts(text)) promise_sorting_once(context, largest->rows, finding);
  return {finding};
}

// "; measured: DRAM at 84% of its peak".
std::string measured_text(const analyze::RooflineRow& row) {
  const double dram = row.use.of(analyze::HardwareUnit::kDram);
  const double tensor = row.use.of(analyze::HardwareUnit::kTensor);
  if (dram < 0 && tensor < 0) return {};
  const bool is_dram = dram >= tensor;
  return std::string("; measured: ") + (is_dram ? "DRAM" : "tensor cores") + " at " +
         short_percent((is_dram ? dram : tensor) / 100) + " of " + (is_dram ? "its" : "their") + " peak";
}

std::vector<Finding> find_dominant_kernel(const Context& context) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  std::map<StringId, Share> shares;
  for (Row row = 0; row < device.size(); ++row) {
    if (device.kind[row] != DeviceKind::kKernel || !context.holds(row)) continue;
    Share& share = shares[device.name[row]];
    share.total_ns += device.duration_ns[row];
    share.rows.push_back(row);
    if (device.duration_ns[row] > share.longest_ns) {
      share.longest_ns = device.duration_ns[row];
      share.longest = row;
    }
  }
  StringId name = kNoString;
  const Share* largest = largest_of(shares, name);
  if (largest == nullptr) return {};
  const analyze::KernelClass what = analyze::kernel_traits(model.text(name)).kernel_class;
  if (what == KernelClass::kCommunication) return {};  // has a finding of its own
  const auto& roofline = context.trace.get<analyze::roofline>();
  const uint32_t of = roofline.row_of_work[largest->longest];
  const double roof = of == kNoRow ? -1 : roofline.rows[of].roof_percent();
  if (roof >= kNearRoofPercent || (roof < 0 && is_meant_to_dominate(what))) return {};
  const Row by = device.op[largest->longest];
  const std::string_view by_name = by == kNoRow ? std::string_view() : model.text(model.host_slices.name[by]);
  const double least = looks_up(by_name) || joins(by_name) ? kSeldomShare : kLargeShare;
  if (context.share_of_step(context.study->per_step(largest->total_ns)) < least) return {};
  Finding finding{.id = "dominant-operator", .confidence = Confidence::kMedium, .precedence = Precedence::kNamed};
  finding.cost_ns = context.study->per_step(largest->total_ns);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.events = static_cast<int64_t>(largest->rows.size());
  const Row op = device.op[largest->longest];
  const std::string caller = op == kNoRow ? "" : caller_of(model, op);
  const std::string op_name = op == kNoRow ? "" : std::string(model.text(model.host_slices.name[op]));
  std::string kernel(model.text(name));
  constexpr size_t kLongestName = 60;
  if (kernel.size() > kLongestName) kernel = kernel.substr(0, kLongestName) + "...";
  finding.title = "one kernel takes " + short_percent(finding.share_of_step) + " of a step: " + kernel +
                  (op_name.empty() ? "" : " of " + op_name) + (caller.empty() ? "" : ", most in " + caller) +
                  (roof < 0 ? "" : "; it reaches " + short_percent(roof / 100) + " of the roofline") +
                  (of == kNoRow ? "" : measured_text(roofline.rows[of]));
  const Advice advice = advice_for(what, op_name);
  finding.try_text = std::string("it may be ") + advice.could_be;
  finding.try_code = advice.code;
  finding.slices.push_back({.row = largest->longest, .on_device = true});
  const bool lacks_shapes = roof < 0 && op != kNoRow && input_dims_text(model, op).empty();
  finding.confirm_by =
      lacks_shapes ? "record with shapes, to see how far it is from the roofline" : "time it alone with these sizes";
  if (sorts(op_name)) {
    std::set<Row> ops;
    for (const Row row : largest->rows) {
      if (device.op[row] != kNoRow) ops.insert(device.op[row]);
    }
    promise_sorting_once(context, {ops.begin(), ops.end()}, finding);
  }
  return {finding};
}

std::vector<Finding> find_dominant(const Context& context) {
  if (context.study == nullptr || context.study->host->chains.empty()) return {};
  return context.has_device_work ? find_dominant_kernel(context) : find_dominant_op(context);
}

}  // namespace

std::vector<Rule> dominant_rules() {
  return {
      {"dominant-operator", "kernels", 0.25, false,
       "One operator (without a GPU), or one kernel, takes 40% of a step or more (25% where it sorts, indexes or\n"
       "joins tensors), or all operators on a tensor that a broadcast made many times larger than its inputs do,\n"
       "and no other rule explains it. That is where to look first, whatever the reason: an input that grows, a\n"
       "layout that makes it copy, a batch that is too small, an algorithm that does more than necessary.\n\n"
       "How it is found: self time by operator name, on the training thread; if it is called at several places in a\n"
       "step, the most expensive one is named. Kernels that reach 60% of the roofline are excluded, and so are\n"
       "matmuls, convolutions and attention whose distance from it is not known, unless one of several calls in a\n"
       "step takes most of the time.\n\n"
       "What to do: time it alone with the shapes it gets, and compare with the time that its FLOPs and bytes need.\n\n"
       "When not: some models are mostly one operator. A large matmul that takes most of a step is what a GPU is\n"
       "made for.",
       find_dominant},
  };
}

}  // namespace firelane::advise
