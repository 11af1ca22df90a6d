#include "export/stacks.h"

#include <string>
#include <vector>

#include "analyze/common/self_time.h"
#include "analyze/ops/stack_tree.h"

namespace firelane::exporter {

namespace {

constexpr StringId kNoOp{UINT32_MAX};  // stands for "(no op)"

void append_frame(std::string& out, std::string_view name) {
  if (name.empty()) out += '_';
  for (const char c : name) {
    const bool breaks = static_cast<unsigned char>(c) <= ' ' || c == ';' || c == '\x7F';
    out += breaks ? '_' : c;
  }
}

// One line for each stack with at least a microsecond, in the order in which they were met.
void write_stacks(const Model& model, const analyze::StackTree& tree, std::string_view root_name, ByteSink& sink) {
  std::string out;
  std::vector<uint32_t> path;
  for (uint32_t node = 0; node < tree.size(); ++node) {
    if (tree[node].self_ns < 1000) continue;
    path.clear();
    for (uint32_t up = node; up != 0; up = tree[up].parent) path.push_back(up);
    for (auto step = path.rbegin(); step != path.rend(); ++step) {
      if (step != path.rbegin()) out += ';';
      const StringId name = tree[*step].name;
      append_frame(out, name == kNoOp ? root_name : model.text(name));
    }
    out += ' ' + std::to_string(tree[node].self_ns / 1000) + '\n';
    if (out.size() > 1 << 18) {
      sink.write(out);
      out.clear();
    }
  }
  sink.write(out);
}

bool is_on_stack(const Model& model, Row row) {
  const HostSlices& host = model.host_slices;
  return model.lanes.kind[static_cast<size_t>(host.lane[row])] == LaneKind::kThread &&
         host.kind[row] != HostKind::kSpan && host.kind[row] != HostKind::kOverhead;
}

// The node of each host slice; 0 for those that are on no stack. Parents come before children.
std::vector<uint32_t> host_nodes(const Model& model, analyze::StackTree& tree) {
  const HostSlices& host = model.host_slices;
  std::vector<uint32_t> nodes(host.size());
  for (Row row = 0; row < host.size(); ++row) {
    if (!is_on_stack(model, row)) continue;
    nodes[row] = tree.child(host.parent[row] == kNoRow ? 0 : nodes[host.parent[row]], host.name[row]);
  }
  return nodes;
}

std::vector<int64_t> self_times(const Model& model) {
  const auto& durations = model.host_slices.duration_ns;
  std::vector<int64_t> self(durations.begin(), durations.end());
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    analyze::sweep_lane(
        model, static_cast<LaneId>(lane), analyze::kAllTime, [](Row) { return true; },
        [&](const analyze::SweptSlice& slice) {
          if (slice.around != kNoRow) self[slice.around] -= slice.covers_ns;
        });
  }
  return self;
}

}  // namespace

void export_stacks(const Model& model, StackMetric metric, ByteSink& sink) {
  analyze::StackTree tree;
  const std::vector<uint32_t> nodes = host_nodes(model, tree);
  if (metric == StackMetric::kSelfHost) {
    const std::vector<int64_t> self = self_times(model);
    for (Row row = 0; row < nodes.size(); ++row) {
      if (nodes[row] != 0) tree[nodes[row]].self_ns += self[row];
    }
  } else {
    const DeviceSlices& device = model.device_slices;
    for (Row row = 0; row < device.size(); ++row) {
      if (!is_device_work(device.kind[row])) continue;
      const uint32_t stack = device.op[row] == kNoRow ? 0 : nodes[device.op[row]];
      const uint32_t below = stack == 0 ? tree.child(0, kNoOp) : stack;
      tree[tree.child(below, device.name[row])].self_ns += device.duration_ns[row];
    }
  }
  write_stacks(model, tree, "(no op)", sink);
}

}  // namespace firelane::exporter
