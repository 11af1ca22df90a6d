#include "analyze/modules/modules.h"

#include <algorithm>
#include <unordered_map>

#include "analyze/device/device_work.h"
#include "analyze/device/kernel_traits.h"
#include "analyze/host/host_calls.h"
#include "analyze/ops/flops.h"
#include "analyze/ops/ops_memory.h"
#include "base/check.h"

namespace firelane::analyze {

namespace {

constexpr uint32_t kNoModule = UINT32_MAX;

class ModuleCollector {
 public:
  ModuleCollector(const Model& model, const ModuleOptions& options)
      : model_(model),
        host_(model.host_slices),
        options_(options),
        phases_(find_phases(model)),
        flops_(model),
        limits_(work_limits(model, roofline_of(model, steps_of(model)))) {}

  ModuleTable run() {
    find_modules();
    link_backward();
    add_device_work();
    add_flops();
    add_memory();
    add_phase_host();
    add_limits();
    int64_t self_ns = table_.without_module_device_ns;
    for (const ModuleRow& row : table_.rows) self_ns += row.self_forward_device_ns + row.self_backward_device_ns;
    FL_CHECK(self_ns == table_.work_ns, "module_table: self device times must add up to all device work");
    return std::move(table_);
  }

 private:
  // Which module (row of the table) is innermost around each host slice, and the slice of its call.
  void find_modules() {
    call_.assign(host_.size(), kNoRow);
    row_of_call_.assign(host_.size(), kNoModule);
    std::unordered_map<std::string, uint32_t> row_of;
    for (Row row = 0; row < host_.size(); ++row) {
      const Row outer = host_.parent[row] == kNoRow ? kNoRow : call_[host_.parent[row]];
      call_[row] = outer;
      if (!is_module_slice(model_, row)) continue;
      call_[row] = row;
      const std::string type(module_type(model_, row));
      const std::string name = options_.by_type ? type : std::string(module_name(model_, row));
      const auto [found, is_new] = row_of.try_emplace(name, static_cast<uint32_t>(table_.rows.size()));
      if (is_new) {
        ModuleRow added{.name = name, .type = type};
        if (outer != kNoRow) {
          added.depth = table_.rows[row_of_call_[outer]].depth + 1;
          if (!options_.by_type) added.parent = table_.rows[row_of_call_[outer]].name;
        }
        table_.rows.push_back(std::move(added));
      }
      row_of_call_[row] = found->second;
      ModuleRow& module = table_.rows[found->second];
      ++module.calls;
      module.self_host_ns += host_.duration_ns[row];
      if (outer != kNoRow) table_.rows[row_of_call_[outer]].self_host_ns -= host_.duration_ns[row];
      if (!inside_same(row, found->second)) module.host_ns += host_.duration_ns[row];
    }
  }

  // Whether a module of that row is already open around the call: counted there (recursion; grouping by type).
  bool inside_same(Row call, uint32_t module) const {
    for (Row at = outer_call(call); at != kNoRow; at = outer_call(at)) {
      if (row_of_call_[at] == module) return true;
    }
    return false;
  }
  Row outer_call(Row call) const { return host_.parent[call] == kNoRow ? kNoRow : call_[host_.parent[call]]; }

  // Forward op of each backward op: the trace's link, else the op with its sequence number.
  void link_backward() {
    const OpDetails& ops = model_.op_details;
    std::unordered_map<int64_t, Row> forward_of;
    for (Row detail = 0; detail < ops.size(); ++detail) {
      const Row slice = ops.slice[detail];
      if (ops.sequence_number[detail] < 0 || phases_.host[slice] == Phase::kBackward) continue;
      forward_of[ops.sequence_number[detail]] = slice;  // the innermost of equals comes last: any lies in the module
    }
    forward_.assign(host_.size(), kNoRow);
    for (Row row = 0; row < host_.size(); ++row) {
      if (phases_.host[row] != Phase::kBackward || host_.kind[row] != HostKind::kOp) continue;
      if (host_.parent[row] != kNoRow) forward_[row] = forward_[host_.parent[row]];
      const Row detail = model_.op_detail(row);
      if (detail == kNoRow) continue;
      if (ops.forward[detail] != kNoRow) {
        forward_[row] = ops.forward[detail];
      } else if (forward_[row] == kNoRow && ops.sequence_number[detail] >= 0) {
        const auto found = forward_of.find(ops.sequence_number[detail]);
        if (found != forward_of.end()) forward_[row] = found->second;
      }
      const bool outermost = host_.parent[row] == kNoRow || forward_[host_.parent[row]] == kNoRow;
      if (forward_[row] != kNoRow && outermost) {
        for_modules(call_[forward_[row]],
                    [&](ModuleRow& module, bool) { module.backward_host_ns += host_.duration_ns[row]; });
      }
    }
  }

  // Calls `add` for the module of `call` and those around it, each once; `innermost` for the first.
  template <typename Add>
  void for_modules(Row call, const Add& add) {
    seen_.clear();
    bool innermost = true;
    for (Row at = call; at != kNoRow; at = outer_call(at), innermost = false) {
      if (std::find(seen_.begin(), seen_.end(), row_of_call_[at]) != seen_.end()) continue;
      seen_.push_back(row_of_call_[at]);
      add(table_.rows[row_of_call_[at]], innermost);
    }
  }

  void add_device_work() {
    const DeviceSlices& device = model_.device_slices;
    for (Row row = 0; row < device.size(); ++row) {
      if (!is_device_work(device.kind[row]) || !is_counted(model_, row)) continue;
      const int64_t ns = counted_ns(model_, row);
      const Phase phase = phases_.device[row];
      const bool is_kernel = device.kind[row] == DeviceKind::kKernel;
      PhaseRow& in_phase = table_.phases[static_cast<size_t>(phase)];
      in_phase.device_ns += ns;
      in_phase.kernels += is_kernel;
      table_.work_ns += ns;
      const Row from = device.op[row] != kNoRow ? device.op[row] : device.launch[row];
      const bool backward = from != kNoRow && phases_.host[from] == Phase::kBackward;
      const Row forward = backward ? forward_[from] : from;
      if (backward && forward == kNoRow) table_.backward_without_forward_ns += ns;
      const Row call = forward == kNoRow ? kNoRow : call_[forward];
      if (call == kNoRow) table_.without_module_device_ns += ns;
      for_modules(call, [&](ModuleRow& module, bool innermost) {
        (backward ? module.backward_device_ns : module.forward_device_ns) += ns;
        if (innermost) (backward ? module.self_backward_device_ns : module.self_forward_device_ns) += ns;
        module.kernels += is_kernel;
        if (limits_[row] == Limit::kCompute) module.compute_device_ns += ns;
      });
    }
  }

  // Outermost ops that have FLOPs: linear, not the addmm in it.
  void add_flops() {
    std::vector<bool> counted(host_.size(), false);
    for (Row row = 0; row < host_.size(); ++row) {
      if (host_.parent[row] != kNoRow) counted[row] = counted[host_.parent[row]];
      if (counted[row] || host_.kind[row] != HostKind::kOp) continue;
      const int64_t flops = flops_.of(row).op_flops;
      if (flops <= 0) continue;
      counted[row] = true;
      table_.phases[static_cast<size_t>(phases_.host[row])].flops += flops;
      const bool backward = phases_.host[row] == Phase::kBackward;
      const Row forward = backward ? forward_[row] : row;
      if (forward == kNoRow) continue;
      for_modules(call_[forward],
                  [&](ModuleRow& module, bool) { (backward ? module.backward_flops : module.forward_flops) += flops; });
    }
  }

  void add_memory() {
    const MemoryEvents& events = model_.memory_events;
    struct Open {
      int64_t net = 0;
      int64_t peak = 0;
    };
    std::unordered_map<Row, Open> calls;
    for (Row event = 0; event < events.size(); ++event) {
      if (events.kind[event] == MemoryEventKind::kOutOfMemory) continue;
      const int64_t bytes = use_of(events.device_type[event], events.bytes[event]).device_bytes;
      if (bytes == 0) continue;
      table_.has_memory = true;
      const Row at = open_slice_at(model_, events.lane[event], events.time_ns[event]);
      if (at == kNoRow) continue;
      if (bytes > 0) table_.phases[static_cast<size_t>(phases_.host[at])].allocated_bytes += bytes;
      for (Row call = call_[at]; call != kNoRow; call = outer_call(call)) {
        Open& open = calls[call];
        open.net += bytes;
        open.peak = std::max(open.peak, open.net);
      }
    }
    for (const auto& [call, open] : calls) {
      ModuleRow& module = table_.rows[row_of_call_[call]];
      if (!inside_same(call, row_of_call_[call])) module.allocated_bytes += open.net;
      module.peak_bytes = std::max(module.peak_bytes, open.peak);
    }
  }

  // Without a device, operators compute themselves: overhead cannot be told from it here.
  void add_limits() {
    CallKinds kinds(model_);
    for (const Row row : model_.call_details.slice) {
      if (row == kNoRow || !is_blocking(kinds.of(row))) continue;
      for_modules(call_[row], [&](ModuleRow& module, bool) { module.waited_ns += host_.duration_ns[row]; });
    }
    if (table_.work_ns == 0) return;
    for (ModuleRow& module : table_.rows) {
      module.limit = group_limit(module.host_ns - module.waited_ns + module.backward_host_ns,
                                 module.forward_device_ns + module.backward_device_ns, module.compute_device_ns);
    }
  }

  void add_phase_host() {
    for (size_t i = 0; i < kPhaseCount; ++i) table_.phases[i].phase = static_cast<Phase>(i);
    for (Row row = 0; row < host_.size(); ++row) {
      if (host_.kind[row] == HostKind::kSpan) continue;
      // A slice's own time counts for its phase; where a slice inside has another phase, that takes its part.
      const Row parent = host_.parent[row];
      const Phase phase = phases_.host[row];
      const Phase outer = parent == kNoRow ? Phase::kNone : phases_.host[parent];
      if (parent != kNoRow && phase == outer) continue;
      table_.phases[static_cast<size_t>(phase)].host_ns += host_.duration_ns[row];
      if (parent != kNoRow) table_.phases[static_cast<size_t>(outer)].host_ns -= host_.duration_ns[row];
    }
  }

  const Model& model_;
  const HostSlices& host_;
  const ModuleOptions options_;
  const Phases phases_;
  FlopsTable flops_;
  const std::vector<Limit> limits_;
  std::vector<Row> call_;              // per host slice: the innermost module call around it, itself included
  std::vector<uint32_t> row_of_call_;  // per module call: its row
  std::vector<Row> forward_;           // per backward op: its forward op
  std::vector<uint32_t> seen_;
  ModuleTable table_;
};

}  // namespace

ModuleTable module_table(const Model& model, const ModuleOptions& options) {
  return ModuleCollector(model, options).run();
}

}  // namespace firelane::analyze
