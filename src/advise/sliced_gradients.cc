#include "advise/sliced_gradients.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "advise/evidence.h"
#include "advise/gain.h"
#include "advise/host_evidence.h"
#include "advise/op_facts.h"
#include "advise/text.h"
#include "analyze/ops/op_storages.h"
#include "analyze/steps/find_steps.h"
#include "analyze/steps/phases.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

constexpr size_t kLeastSlices = 8;  // of one tensor in a step
constexpr double kPart = 0.5;       // of that tensor, at most

int64_t node_number(const Model& model, Row op) {
  const Row detail = model.op_detail(op);
  const int64_t number = detail == kNoRow ? kNoNumber : model.op_details.sequence_number[detail];
  return number == kNoNumber ? -1 : number;
}

bool slices(std::string_view name) { return name == "aten::slice" || name == "aten::select"; }

struct SlicedTensor {
  uint64_t storage = 0;
  double elements = 0;
};

// What slices of the forward pass are taken from, by the numbers of their nodes.
std::unordered_map<int64_t, SlicedTensor> sources_of(const Context& context, const analyze::Phases& phases) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::unordered_map<int64_t, SlicedTensor> sources;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || phases.host[row] == analyze::Phase::kBackward) continue;
    if (!slices(name_of_op(model, row)) || node_number(model, row) < 0) continue;
    const StringId tensors = model.op_details.tensors[model.op_detail(row)];
    if (tensors == kNoString) continue;
    const std::vector<analyze::StorageInput> inputs = analyze::parse_storages(model.text(tensors));
    const std::vector<analyze::Dims> shapes = shapes_of_op(model, row);
    if (inputs.empty() || shapes.empty()) continue;
    sources[node_number(model, row)] = {.storage = inputs[0].storage, .elements = elements_of(shapes[0])};
  }
  return sources;
}

// Elements of the gradient that a node puts among zeros; 0: it does something else.
double sliced_elements(const Model& model, Row node) {
  const HostSlices& host = model.host_slices;
  const Row lane_end = model.lanes.host_end[static_cast<size_t>(host.lane[node])];
  for (Row row = node + 1; row < lane_end && host.start_ns[row] < host.end_ns(node); ++row) {
    const std::string_view name = name_of_op(model, row);
    if (name != "aten::slice_backward" && name != "aten::select_backward") continue;
    const std::vector<analyze::Dims> shapes = shapes_of_op(model, row);
    return shapes.empty() ? 0 : elements_of(shapes[0]);
  }
  return 0;
}

}  // namespace

std::vector<Finding> sliced_gradients(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const auto& phases = context.trace.get<analyze::find_phases>();
  if (!phases.has_backward) return {};
  const std::unordered_map<int64_t, SlicedTensor> sources = sources_of(context, phases);
  if (sources.empty()) return {};
  std::map<std::pair<size_t, uint64_t>, std::vector<Row>> by_source;  // and step
  const auto& steps = context.study->steps.steps;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    if (host.role[row] != HostRole::kBackwardNode) continue;
    const std::string_view name = name_of_op(model, row);
    if (!contains(name, ": SliceBackward") && !contains(name, ": SelectBackward")) continue;
    const auto source = sources.find(node_number(model, row));
    if (source == sources.end()) continue;
    const double elements = sliced_elements(model, row);
    if (elements <= 0 || elements > kPart * source->second.elements) continue;
    const auto step = std::partition_point(
        steps.begin(), steps.end(), [&](const analyze::FoundStep& each) { return each.end_ns <= host.start_ns[row]; });
    by_source[{static_cast<size_t>(step - steps.begin()), source->second.storage}].push_back(row);
  }
  std::vector<Row> nodes;
  std::vector<Row> most;
  for (const auto& [key, rows] : by_source) {
    if (rows.size() < kLeastSlices) continue;
    nodes.insert(nodes.end(), rows.begin(), rows.end());
    if (rows.size() > most.size()) most = rows;
  }
  if (nodes.empty()) return {};
  // One operator for all slices still writes their gradients, once.
  constexpr double kSlicesStayLow = 0.5;
  constexpr double kSlicesStayHigh = 0.2;
  const Context calls = with_true_calls(context);
  Evidence evidence(calls);
  for (const Row node : nodes) {
    if (context.has_device_work) {
      evidence.add_host(node, kSlicesStayLow, kSlicesStayHigh);
    } else {
      evidence.add_call(node, kSlicesStayLow, kSlicesStayHigh);
    }
    evidence.add_way_to(node);
  }
  if (context.has_device_work) {
    for (const Row work : launched_during(model, nodes)) evidence.add_device(work, kSlicesStayLow, kSlicesStayHigh);
  }
  Finding finding{
      .id = "repeated-operators",
      .try_text =
          "take all slices with one operator: its gradient is written once, without a tensor of zeros for each slice",
      .try_code =
          "rows = x.unbind(1)  # instead of [x[:, i] for i in range(n)]; x.unfold(2, size, stride) "
          "for windows, split for parts",
      .confidence = Confidence::kMedium,
      .confirm_by = "compare gradients and step times",
      .cause = "loop",
      .part_of = "overhead"};
  evidence.fill(finding);
  finding.of_step_ns = calls.step_ns;
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.events = static_cast<int64_t>(nodes.size());
  const std::string_view name = name_of_op(model, most.front());
  finding.title = "the gradient of each of " + std::to_string(most.size()) +
                  " slices of one tensor is written into zeros of its full size, and all are summed (" +
                  std::string(name.substr(name.rfind(' ') + 1)) + "): " + short_percent(finding.share_of_step) +
                  " of a step";
  return {finding};
}

}  // namespace firelane::advise
