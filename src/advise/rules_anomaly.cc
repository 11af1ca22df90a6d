// Anomaly detection left on: autograd then checks for NaN after every node, and stores a stack for every forward
// operator.
//
// The engine's checks are visible in the trace: aten::isnan, aten::_is_any_true and a read of the answer, called by the
// node itself. The stacks are not: creating one is part of the operator that creates the node. Views show how long it
// takes, because they do nothing else. So the checks are removed entirely, and of each operator that creates a node,
// the time of a view at the same place.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "advise/evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/host/cpu_ops.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

constexpr int64_t kUsualStackNs = 100'000;  // where no view makes a node
constexpr double kLeastKept = 0.05;         // of an operator: it is still called

bool is_check(std::string_view name) {
  return name == "aten::isnan" || name == "aten::_is_any_true" || name == "aten::item";
}

// The checks that nodes of the judged steps called, in order; empty where fewer than half of the nodes did.
std::vector<Row> checks(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::vector<Row> found;
  int64_t nodes = 0;
  int64_t checked = 0;
  Row last = kNoRow;  // the node of the last check
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    const std::string_view name = model.text(host.name[row]);
    if (host.role[row] == HostRole::kBackwardNode) ++nodes;
    const Row parent = host.parent[row];
    if (!is_check(name) || parent == kNoRow || host.role[parent] != HostRole::kBackwardNode) continue;
    found.push_back(row);
    if (name == "aten::isnan" && parent != last) {
      ++checked;
      last = parent;
    }
  }
  return 2 * checked >= std::max<int64_t>(nodes, 1) ? found : std::vector<Row>();
}

// Nodes that an operator makes: the sequence numbers that it and those inside of it have.
int64_t nodes_made(const Model& model, Row op) {
  const HostSlices& host = model.host_slices;
  int64_t first = kNoNumber;
  int64_t last = kNoNumber;
  for (Row row = op; row < host.size() && host.lane[row] == host.lane[op] && host.start_ns[row] < host.end_ns(op);
       ++row) {
    const Row detail = host.kind[row] == HostKind::kOp ? model.op_detail(row) : kNoRow;
    const int64_t number = detail == kNoRow ? kNoNumber : model.op_details.sequence_number[detail];
    if (number < 0) continue;
    first = first == kNoNumber ? number : std::min(first, number);
    last = std::max(last, number);
  }
  return first == kNoNumber ? 0 : last - first + 1;
}

// A view that makes a node: its time is that of the node's stack.
bool is_stack_alone(const Model& model, Row row) {
  const HostSlices& host = model.host_slices;
  if (host.kind[row] != HostKind::kOp || !analyze::is_view_op(model.text(host.name[row]))) return false;
  const Row detail = model.op_detail(row);
  return detail != kNoRow && model.op_details.sequence_number[detail] >= 0;
}

// What a stack takes in this program at least, most often: a quarter of all views take less.
int64_t usual_stack_ns(const Context& context) {
  std::vector<int64_t> all;
  for (Row row = 0; row < context.model.host_slices.size(); ++row) {
    const bool is_judged = context.in_window(context.model.host_slices.start_ns[row]);
    if (is_judged && is_stack_alone(context.model, row)) all.push_back(context.model.host_slices.duration_ns[row]);
  }
  if (all.empty()) return kUsualStackNs;
  const auto quarter = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 4);
  std::nth_element(all.begin(), quarter, all.end());
  return *quarter;
}

// The deeper the program stands in Python's functions the more: where a view is part of the operator, it says so.
int64_t stack_ns_of(const Model& model, Row op, int64_t usual_ns) {
  const HostSlices& host = model.host_slices;
  for (Row row = op; row < host.size() && host.lane[row] == host.lane[op] && host.start_ns[row] < host.end_ns(op);
       ++row) {
    if (is_stack_alone(model, row)) return host.duration_ns[row];
  }
  return usual_ns;
}

std::vector<Finding> find_anomaly_detection(const Context& context) {
  const std::vector<Row> found = checks(context);
  if (found.empty()) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  Evidence evidence(context);
  for (const Row row : found) {
    evidence.add_call(row, 0, 0);
    evidence.add_way_to(row);
  }
  // Their kernels, and the waits for them, begin inside of a check.
  const auto in_check = [&](Row op) {
    while (op != kNoRow && !std::binary_search(found.begin(), found.end(), op)) op = host.parent[op];
    return op != kNoRow;
  };
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    if (model.device_slices.op[row] != kNoRow && in_check(model.device_slices.op[row])) evidence.add_device(row, 0, 0);
  }
  for (Row row = 0; row < host.size(); ++row) {
    const bool waits = is_call(host.kind[row]) && contains(model.text(host.name[row]), "Synchronize");
    if (waits && in_check(host.parent[row])) evidence.add_wait(row);
  }
  const int64_t usual_ns = usual_stack_ns(context);
  for (Row row = 0; row < host.size(); ++row) {
    if (!is_outermost_op(host, row) || model.text(host.name[row]).starts_with("autograd::")) continue;
    const auto took = static_cast<double>(std::max<int64_t>(1, host.duration_ns[row]));
    const auto nodes = static_cast<double>(nodes_made(model, row));
    if (nodes == 0) continue;
    const auto stack = static_cast<double>(stack_ns_of(model, row, usual_ns));
    const auto kept = [&](double stack_ns) { return std::max(kLeastKept, 1 - nodes * stack_ns / took); };
    constexpr double kLess = 0.85;
    constexpr double kMore = 1.15;
    evidence.add_call(row, kept(kLess * stack), kept(kMore * stack));
  }
  Finding finding{.id = "anomaly-detection",
                  .try_text = "turn it on to find a NaN, not for training",
                  .try_code = "torch.autograd.set_detect_anomaly(False)  # or Trainer(detect_anomaly=False)",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "time some steps without it",
                  .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  const auto isnan = [&](Row row) { return model.text(host.name[row]) == "aten::isnan"; };
  const int64_t count = std::count_if(found.begin(), found.end(), isnan) / std::max<int64_t>(1, context.step_count);
  finding.title = "anomaly detection is on: autograd checks for NaN " + counted(count, "time", "times") +
                  " a step, and stores a stack for every forward operator";
  return {finding};
}

}  // namespace

std::vector<Rule> anomaly_rules() {
  return {
      {"anomaly-detection", "host", 0.02, true,
       "With torch.autograd.set_detect_anomaly(True) the autograd engine checks every gradient of every node for\n"
       "NaN and waits for the answer, and every forward operator stores the Python stack that called it, which\n"
       "takes longer than most operators.\n\n"
       "Detected where at least half of the backward nodes call aten::isnan themselves. The gain leaves out the\n"
       "checks, and for each node that the forward pass creates the time of a view that creates one, which is\n"
       "almost only its stack.\n\n"
       "What to do: turn it off; use it in a separate short run to find a NaN.\n\n"
       "When not: the purpose of this run is to find a NaN.",
       find_anomaly_detection},
  };
}

}  // namespace firelane::advise
