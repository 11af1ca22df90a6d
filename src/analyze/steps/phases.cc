#include "analyze/steps/phases.h"

#include <algorithm>
#include <array>

#include "model/host_role.h"
#include "model/module_call.h"

namespace firelane::analyze {

namespace {

bool is_transfer_op(std::string_view name) {
  return name == "aten::to" || name == "aten::_to_copy" || name == "aten::copy_" || name == "aten::cuda" ||
         name == "aten::pin_memory" || name == "aten::_pin_memory";
}

Phase annotation_phase(std::string_view name) {
  if (is_of_data_loader(role_of(name))) return Phase::kData;
  if (is_of_optimizer(role_of(name))) return Phase::kOptimizer;
  if (name == "backward" || name == "Backward") return Phase::kBackward;
  if (name == "forward" || name == "Forward") return Phase::kForward;
  return Phase::kNone;
}

// The phase that a slice of that name says by itself. Asked once per name.
Phase phase_of_name(HostKind kind, std::string_view name) {
  switch (kind) {
    case HostKind::kAnnotation: return annotation_phase(name);
    case HostKind::kOp:
      if (role_of(name) == HostRole::kBackwardNode || name.starts_with("torch::autograd::")) return Phase::kBackward;
      if (!name.starts_with("aten::") && name.find("Backward") != std::string_view::npos) return Phase::kBackward;
      return annotation_phase(name);
    case HostKind::kPython:
      if (name.starts_with("torch/_tensor.py(") && name.ends_with(": backward")) return Phase::kBackward;
      if (name.starts_with("torch/autograd/__init__.py(") && name.ends_with(": backward")) return Phase::kBackward;
      return Phase::kNone;
    default: return Phase::kNone;
  }
}

// Phases of names, found once each: names repeat thousands of times.
class NamePhases {
 public:
  explicit NamePhases(const Model& model) : model_(model) {
    for (auto& known : known_) known.assign(model.strings.size(), kNotAsked);
  }
  Phase of(HostKind kind, StringId name) {
    uint8_t& known = known_[static_cast<size_t>(kind)][static_cast<uint32_t>(name)];
    if (known == kNotAsked) known = static_cast<uint8_t>(phase_of_name(kind, model_.text(name)));
    return static_cast<Phase>(known);
  }

 private:
  static constexpr uint8_t kNotAsked = 255;
  const Model& model_;
  std::array<std::vector<uint8_t>, kHostKindCount> known_;
};

// The outermost op around `op` that does nothing but move data, itself included.
Row outermost_transfer(const Model& model, Row op) {
  Row found = kNoRow;
  for (Row row = op; row != kNoRow && model.host_slices.kind[row] == HostKind::kOp;
       row = model.host_slices.parent[row]) {
    if (is_transfer_op(model.text(model.host_slices.name[row]))) found = row;
  }
  return found;
}

}  // namespace

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, kPhaseCount> kNames = {"none",      "forward", "backward",
                                                                "optimizer", "data",    "transfer"};
  return kNames[static_cast<size_t>(phase)];
}

bool is_module_slice(const Model& model, Row host_row) {
  const HostSlices& host = model.host_slices;
  if (host.module[host_row] != ModuleCall::kNumbered) return host.module[host_row] == ModuleCall::kPath;
  // A recording of modules and of stacks has each call twice: the frame lies in our slice, which knows the path.
  const Row parent = host.parent[host_row];
  return parent == kNoRow || host.module[parent] != ModuleCall::kPath;
}

std::string_view module_name(const Model& model, Row host_row) {
  const std::string_view name = model.text(model.host_slices.name[host_row]);
  if (model.host_slices.module[host_row] == ModuleCall::kNumbered) return name.substr(kNumberedModule.size());
  return name.substr(0, name.rfind(" ("));
}

std::string_view module_type(const Model& model, Row host_row) {
  const std::string_view name = model.text(model.host_slices.name[host_row]);
  if (model.host_slices.module[host_row] == ModuleCall::kNumbered)
    return name.substr(0, name.rfind('_')).substr(kNumberedModule.size());
  const size_t open = name.rfind(" (");
  return open == std::string_view::npos ? name : name.substr(open + 2, name.size() - open - 3);
}

bool is_host_copy(const Model& model, Row device_row) {
  const CopyDirection direction = model.copy_kinds(device_row).direction;
  return direction == CopyDirection::kHtoD || direction == CopyDirection::kDtoH;
}

Row open_slice_at(const Model& model, LaneId lane, int64_t time_ns) {
  const HostSlices& host = model.host_slices;
  const auto l = static_cast<uint32_t>(lane);
  const auto begin = host.start_ns.begin() + model.lanes.host_begin[l];
  const auto end = host.start_ns.begin() + model.lanes.host_end[l];
  const auto after = std::upper_bound(begin, end, time_ns);
  if (after == begin) return kNoRow;
  Row row = static_cast<Row>(after - host.start_ns.begin()) - 1;
  while (row != kNoRow && (host.end_ns(row) < time_ns || host.kind[row] == HostKind::kSpan)) row = host.parent[row];
  return row;
}

OptimizerSteps::OptimizerSteps(const Model& model) : model_(model) {
  const HostSlices& host = model.host_slices;
  NamePhases names(model);
  int64_t until = INT64_MIN;
  for (Row row = 0; row < host.size(); ++row) {
    if (row > 0 && host.lane[row] != host.lane[row - 1]) until = INT64_MIN;
    if (host.start_ns[row] < until || host.kind[row] != HostKind::kOp) continue;
    if (names.of(host.kind[row], host.name[row]) != Phase::kBackward) continue;
    until = host.end_ns(row);
    backward_.push_back(row);
  }
  std::stable_sort(backward_.begin(), backward_.end(),
                   [&](Row a, Row b) { return host.start_ns[a] < host.start_ns[b]; });
}

int64_t OptimizerSteps::update_start_ns(Row step) const {
  const HostSlices& host = model_.host_slices;
  auto after = std::partition_point(backward_.begin(), backward_.end(),
                                    [&](Row row) { return host.start_ns[row] < host.end_ns(step); });
  while (after != backward_.begin() && host.start_ns[*std::prev(after)] >= host.start_ns[step]) {
    const Row last = *--after;
    if (host.end_ns(last) <= host.end_ns(step)) return host.end_ns(last);
  }
  return host.start_ns[step];
}

Phases find_phases(const Model& model) {
  const HostSlices& host = model.host_slices;
  const DeviceSlices& device = model.device_slices;
  Phases phases{.host = std::vector<Phase>(host.size(), Phase::kNone),
                .device = std::vector<Phase>(device.size(), Phase::kNone)};
  std::vector<bool> transfers(host.size(), false);
  for (Row row = 0; row < device.size(); ++row) {
    if (!is_host_copy(model, row) || device.op[row] == kNoRow) continue;
    const Row op = outermost_transfer(model, device.op[row]);
    if (op != kNoRow) transfers[op] = true;
  }
  NamePhases names(model);
  const OptimizerSteps optimizer(model);
  std::vector<bool> in_closure(host.size(), false);  // right below an optimizer's step, before its update
  int64_t update_start_ns = INT64_MIN;               // of the step that was open last
  for (Row row = 0; row < host.size(); ++row) {      // parents stand before their children
    const Phase outer = host.parent[row] == kNoRow ? Phase::kNone : phases.host[host.parent[row]];
    Phase own = names.of(host.kind[row], host.name[row]);
    if (own == Phase::kOptimizer && host.role[row] == HostRole::kOptimizerStep) {
      update_start_ns = optimizer.update_start_ns(row);
      in_closure[row] = update_start_ns > host.start_ns[row];
    } else if (own == Phase::kNone && host.parent[row] != kNoRow && in_closure[host.parent[row]]) {
      const bool computes = host.kind[row] == HostKind::kOp || is_module_slice(model, row);
      in_closure[row] = host.start_ns[row] < update_start_ns && !computes;
      if (computes && host.start_ns[row] < update_start_ns) own = Phase::kForward;
    }
    if (own == Phase::kNone && host.kind[row] == HostKind::kOp) {
      const Row detail = model.op_detail(row);
      const bool has_forward_thread = detail != kNoRow && model.op_details.forward_thread[detail] > 0;
      if (has_forward_thread) own = Phase::kBackward;
      if (own == Phase::kNone && outer == Phase::kNone) own = Phase::kForward;
    }
    if (own == Phase::kNone && is_module_slice(model, row) && outer == Phase::kNone) own = Phase::kForward;
    const bool may_be_transfer = outer == Phase::kNone || outer == Phase::kForward;
    if (transfers[row] && may_be_transfer) own = Phase::kTransfer;
    phases.host[row] = own == Phase::kNone ? outer : own;
    phases.has_backward = phases.has_backward || own == Phase::kBackward;
  }
  for (Row row = 0; row < device.size(); ++row) {
    const Row from = device.op[row] != kNoRow ? device.op[row] : device.launch[row];
    if (from != kNoRow) phases.device[row] = phases.host[from];
    if (is_host_copy(model, row)) phases.device[row] = Phase::kTransfer;
  }
  return phases;
}

}  // namespace firelane::analyze
