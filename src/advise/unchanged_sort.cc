#include "advise/unchanged_sort.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "advise/gain.h"
#include "advise/host_evidence.h"
#include "analyze/ops/tensor_flow.h"

namespace firelane::advise {

namespace {

// Whether these calls, one or more in every step, get the same data each time: kUnknown where a recording does not
// follow tensors and the shapes do not say otherwise.
enum class SameData : uint8_t { kNo, kUnknown, kYes };
SameData is_same_data(const Context& context, const std::vector<Row>& calls) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  if (context.step_count < 2 || static_cast<int64_t>(calls.size()) % context.step_count != 0) return SameData::kNo;
  std::set<std::string_view> shapes;
  std::map<uint64_t, std::set<int64_t>> storages;  // and when each was made
  const analyze::TensorFlow flow(model);
  for (const Row call : calls) {
    shapes.insert(input_dims_text(model, call));
    for (const analyze::TensorFlow::Input& input : flow.inputs_of(call)) storages[input.storage].insert(input.made_ns);
  }
  if (shapes.contains("") ||
      static_cast<int64_t>(shapes.size()) * context.step_count > static_cast<int64_t>(calls.size()))
    return SameData::kNo;
  if (!flow.is_known() || storages.empty()) return SameData::kUnknown;
  for (const auto& [storage, times] : storages) {
    if (times.size() > 1 || (*times.begin() != kNoNumber && context.in_window(*times.begin()))) return SameData::kNo;
  }
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    if (!model.text(host.name[row]).ends_with('_')) continue;
    for (const analyze::TensorFlow::Input& input : flow.inputs_of(row)) {
      if (storages.contains(input.storage)) return SameData::kNo;
    }
  }
  return SameData::kYes;
}

// The calls of one operator that take most of its time: a small call beside them is another matter.
std::vector<Row> long_calls(const Context& context, std::vector<Row> calls) {
  constexpr int64_t kOfLongest = 4;
  const HostSlices& host = context.model.host_slices;
  std::map<std::string_view, int64_t> longest;  // by shapes
  int64_t most_ns = 0;
  for (const Row call : calls) {
    int64_t& ns = longest[input_dims_text(context.model, call)];
    ns = std::max(ns, host.duration_ns[call]);
    most_ns = std::max(most_ns, ns);
  }
  if (context.has_device_work) return calls;  // the host's time says nothing about what it launched
  std::erase_if(calls, [&](Row call) { return longest[input_dims_text(context.model, call)] * kOfLongest < most_ns; });
  return calls;
}

}  // namespace

void promise(const Context& context, Evidence& evidence, Finding& finding) {
  if (evidence.empty()) return;
  Finding saved{.id = finding.id};
  evidence.fill(saved);
  finding.gain = gain_range(context, saved);
}

bool sorts(std::string_view name) {
  return name.find("sort") != std::string_view::npos || name.find("unique") != std::string_view::npos;
}

void promise_sorting_once(const Context& context, std::vector<Row> calls, Finding& finding) {
  calls = long_calls(context, std::move(calls));
  const SameData same = is_same_data(context, calls);
  if (same == SameData::kNo) return;
  constexpr double kKeepAtWorst = 0.1;
  Evidence evidence(context);
  for (const Row call : calls) {
    const Row op = outermost_op(context.model, call);
    if (context.has_device_work) {
      evidence.add_host(op, kKeepAtWorst);
    } else {
      evidence.add_call(op, kKeepAtWorst, 0);
    }
    evidence.add_way_to(op);
  }
  if (context.has_device_work) {
    std::vector<Row> ops;
    for (const Row call : calls) ops.push_back(outermost_op(context.model, call));
    for (const Row work : launched_during(context.model, ops)) evidence.add_device(work, 0, 0);
  }
  promise(context, evidence, finding);
  if (finding.gain.high_ns == 0) return;
  finding.confidence = same == SameData::kYes ? Confidence::kMedium : Confidence::kLow;
  if (same == SameData::kYes) finding.precedence = Precedence::kNeedless;
  finding.title += same == SameData::kYes ? "; its inputs did not change between steps"
                                          : "; its inputs have the same shapes in every step";
}

}  // namespace firelane::advise
