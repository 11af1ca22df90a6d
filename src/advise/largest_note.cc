#include "advise/largest_note.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "advise/dominant_words.h"
#include "advise/host_evidence.h"
#include "advise/text.h"
#include "analyze/compute/roofline.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/ops/op_inputs.h"

namespace firelane::advise {

namespace {

using analyze::KernelClass;

// Share of a step.
constexpr double kWithTheseShapes = 0.25;
constexpr double kWithAnyShapes = 0.4;

// Calls of one operator.
struct Large {
  int64_t ns = 0;  // in all analyzed steps
  std::unordered_set<Row> calls;
  Row longest = kNoRow;
  int64_t longest_ns = -1;
  KernelClass what = KernelClass::kOther;
  double roof_ns = 0;  // of work whose roof is known, as is `of_roof_ns`
  double of_roof_ns = 0;

  void add(Row op, int64_t took_ns) {
    ns += took_ns;
    calls.insert(op);
    if (took_ns <= longest_ns) return;
    longest_ns = took_ns;
    longest = op;
  }
};

struct Candidates {
  std::map<std::pair<StringId, StringId>, Large> by_shapes;  // name and shapes
  std::map<StringId, Large> by_name;
  int64_t step_ns = 0;  // of all analyzed steps
};

StringId shapes_at(const Model& model, Row op) {
  const Row detail = model.op_detail(op);
  return detail == kNoRow ? kNoString : model.op_details.input_dims[detail];
}

Candidates on_device(const Context& context) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  const auto& roofline = context.trace.get<analyze::roofline>();
  Candidates out{.by_shapes = {}, .by_name = {}, .step_ns = context.step_ns * context.step_count};
  for (Row row = 0; row < device.size(); ++row) {
    const Row op = device.op[row];
    if (device.kind[row] != DeviceKind::kKernel || op == kNoRow || !context.holds(row)) continue;
    if (model.host_slices.kind[op] != HostKind::kOp) continue;
    const StringId name = model.host_slices.name[op];
    const uint32_t at = roofline.row_of_work[row];
    for (Large* each : {&out.by_shapes[{name, shapes_at(model, op)}], &out.by_name[name]}) {
      each->add(op, device.duration_ns[row]);
      if (at == kNoRow) continue;
      const analyze::RooflineRow& of = roofline.rows[at];
      each->what = of.kernel_class;
      if (of.roof_ns < 0 || of.device_ns <= 0) continue;
      const auto ns = static_cast<double>(device.duration_ns[row]);
      each->of_roof_ns += ns;
      each->roof_ns += ns * of.roof_ns / static_cast<double>(of.device_ns);
    }
  }
  return out;
}

Candidates on_host(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const analyze::HostChain& chain = context.study->host->chains[0];
  Candidates out;
  for (size_t i = chain.segment_after(context.window.start_ns); i < chain.segments.size(); ++i) {
    const analyze::HostSegment& segment = chain.segments[i];
    if (segment.start_ns >= context.window.end_ns) break;
    const int64_t ns =
        std::min(segment.end_ns, context.window.end_ns) - std::max(segment.start_ns, context.window.start_ns);
    if (segment.activity != analyze::Activity::kNoCore) out.step_ns += ns;
    if (segment.activity != analyze::Activity::kOp) continue;
    const StringId name = host.name[segment.slice];
    for (Large* each : {&out.by_shapes[{name, shapes_at(model, segment.slice)}], &out.by_name[name]}) {
      each->add(segment.slice, ns);
      each->what = analyze::op_class(model.text(name));
    }
  }
  return out;
}

// A convolution by itself of each channel, with many weights: a blur, or another filter.
bool filters_channels(const Model& model, Row op) {
  constexpr int64_t kLargeKernel = 7;
  const std::vector<analyze::Dims> shapes = analyze::parse_input_dims(input_dims_text(model, op));
  for (size_t i = 0; i + 1 < shapes.size(); ++i) {
    const analyze::Dims& weights = shapes[i + 1];
    const bool is_square = weights.size() == 4 && weights[2] == weights[3] && weights[2] >= kLargeKernel;
    if (is_square && weights[1] == 1 && shapes[i].size() == 4 && shapes[i][1] > 1) return true;
  }
  return false;
}

std::string hint_for(const Context& context, const Large& large, double roof) {
  const Model& model = context.model;
  const std::string_view name = model.text(model.host_slices.name[large.longest]);
  if (large.what == KernelClass::kConvolution && filters_channels(model, large.longest)) {
    return "a square kernel for each channel; if it is separable, as a Gaussian blur is, two one-dimensional "
           "convolutions "
           "compute the same at a fraction of the cost";
  }
  const bool is_at_peak = roof >= kNearRoofPercent / 100;
  if (is_at_peak || (is_meant_to_dominate(large.what) && roof < 0)) {
    return "useful work; check that all of it is needed (every position, row, window and head, in every step)";
  }
  return "it may be " + std::string(advice_for(large.what, name).could_be);
}

// Whether a finding points at this operator, or at one that called it.
bool is_told(const Model& model, Row op, const std::vector<Finding>& findings) {
  const HostSlices& host = model.host_slices;
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.gain.high_ns > 0 &&
           std::any_of(finding.slices.begin(), finding.slices.end(), [&](const SliceRef& slice) {
             const Row of = slice.on_device ? model.device_slices.op[slice.row] : slice.row;
             if (of == kNoRow || slice.on_device) return of != kNoRow && of == op;
             for (Row row = op; row != kNoRow && host.kind[row] == HostKind::kOp; row = host.parent[row]) {
               if (host.name[row] == host.name[of]) return true;
             }
             return false;
           });
  });
}

}  // namespace

std::string largest_note(const Context& context, const std::vector<Finding>& findings) {
  if (context.study == nullptr || context.study->host->chains.empty()) return "";
  const Candidates all = context.has_device_work ? on_device(context) : on_host(context);
  if (all.step_ns <= 0) return "";
  const auto share = [&](const Large& large) {
    return static_cast<double>(large.ns) / static_cast<double>(all.step_ns);
  };
  const auto largest_of = [](const auto& of) {
    const Large* largest = nullptr;
    for (const auto& [key, each] : of) {
      if (largest == nullptr || each.ns > largest->ns) largest = &each;
    }
    return largest;
  };
  const Large* large = largest_of(all.by_shapes);
  bool is_one_shape = true;
  if (large == nullptr || share(*large) < kWithTheseShapes) {
    large = largest_of(all.by_name);
    is_one_shape = false;
    if (large == nullptr || share(*large) < kWithAnyShapes) return "";
  }
  const Model& model = context.model;
  if (is_told(model, large->longest, findings)) return "";
  const std::string dims = dims_text(model, large->longest);
  const std::string caller = caller_of(model, large->longest);
  const auto calls = static_cast<int64_t>(large->calls.size());
  const double roof = large->of_roof_ns <= 0 ? -1 : std::min(1.0, large->roof_ns / large->of_roof_ns);
  return "largest operator: " + std::string(model.text(model.host_slices.name[large->longest])) +
         (dims.empty() ? "" : (is_one_shape ? " with inputs of " : ", most with inputs of ") + dims) +
         (caller.empty() ? "" : ", in " + caller) + " takes " + short_percent(std::min(1.0, share(*large))) +
         " of a step, " + counted(std::max<int64_t>(1, context.study->per_step(calls)), "call", "calls") +
         (roof < 0 ? "" : ", at " + short_percent(roof) + " of the roofline") + ": " + hint_for(context, *large, roof);
}

}  // namespace firelane::advise
