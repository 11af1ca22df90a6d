// Joins device work to the call that queued it (by correlation id) and both to their op
// (by external id; without ids, the innermost op open on the thread at that time).
#include <algorithm>

#include "base/id_map.h"
#include "model/assemble.h"

namespace firelane {

namespace {

// The innermost op or annotation around a host slice.
Row enclosing_op(const HostSlices& slices, Row row) {
  for (Row up = slices.parent[row]; up != kNoRow; up = slices.parent[up]) {
    if (slices.kind[up] == HostKind::kOp || slices.kind[up] == HostKind::kAnnotation) return up;
  }
  return kNoRow;
}

bool queues_work(std::string_view name) {
  for (const std::string_view part : {"Launch", "Memcpy", "Memset"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// What torch said about the collective that the op asks for; its kernels do the same one. Around the launch c10d opens
// a range of its own (nccl:all_reduce) inside of the op that has the details.
Row collective_of(const Model& model, Row op) {
  if (model.comm_details.size() == 0) return kNoRow;
  for (Row row = op; row != kNoRow; row = enclosing_op(model.host_slices, row)) {
    const Row detail = model.op_detail(row);
    if (detail != kNoRow && model.op_details.comm[detail] != kNoRow) return model.op_details.comm[detail];
    if (model.host_slices.kind[row] == HostKind::kOp) break;
  }
  return kNoRow;
}

IdMap ops_by_external_id(const OpDetails& ops) {
  IdMap map(ops.size());
  for (Row detail = 0; detail < ops.size(); ++detail) {
    if (ops.external_id[detail] != kNoNumber && ops.slice[detail] != kNoRow)
      map.insert(ops.external_id[detail], ops.slice[detail]);
  }
  return map;
}

}  // namespace

void link_slices(Model& model) {
  const HostSlices& host = model.host_slices;
  DeviceSlices& device = model.device_slices;
  CallDetails& calls = model.call_details;
  if (calls.size() == 0 && device.size() == 0) return;
  // Formats that join by nesting alone need no map of all their ops.
  const auto has_ids = [](const Column<int64_t>& ids) {
    return std::any_of(ids.begin(), ids.end(), [](int64_t id) { return id != kNoNumber; });
  };
  const IdMap op_of =
      has_ids(calls.external_id) || has_ids(device.external_id) ? ops_by_external_id(model.op_details) : IdMap(0);
  const auto find_op = [&](int64_t external_id) { return external_id == kNoNumber ? kNoRow : op_of.find(external_id); };

  IdMap call_of(calls.size());
  for (Row detail = 0; detail < calls.size(); ++detail) {
    const Row slice = calls.slice[detail];
    if (slice == kNoRow) continue;
    calls.op[detail] = find_op(calls.external_id[detail]);
    if (calls.op[detail] == kNoRow) calls.op[detail] = enclosing_op(host, slice);
    if (calls.correlation[detail] != kNoNumber) call_of.insert(calls.correlation[detail], detail);
  }

  std::vector<bool> used(calls.size());
  for (Row row = 0; row < device.size(); ++row) {
    const Row call = device.correlation[row] == kNoNumber ? kNoRow : call_of.find(device.correlation[row]);
    // Kineto writes the correlation id of a synchronization as its external id too.
    const bool own_id = device.kind[row] == DeviceKind::kSync && device.external_id[row] == device.correlation[row];
    device.op[row] = own_id ? kNoRow : find_op(device.external_id[row]);
    if (call != kNoRow) {
      used[call] = true;
      device.launch[row] = calls.slice[call];
      if (device.op[row] == kNoRow) device.op[row] = calls.op[call];
    }
    if (!is_launched(device.kind[row])) continue;
    if (device.comm[row] == kNoRow) device.comm[row] = collective_of(model, device.op[row]);
    if (call == kNoRow) ++model.losses[Stat::kDeviceSliceWithoutLaunch];
    if (device.op[row] == kNoRow) ++model.losses[Stat::kDeviceSliceWithoutOp];
    if (call != kNoRow && device.start_ns[row] < host.start_ns[device.launch[row]])
      ++model.losses[Stat::kKernelBeforeLaunch];
  }

  std::vector<int8_t> queues(model.strings.size(), -1);  // per name, asked once
  for (Row detail = 0; detail < calls.size(); ++detail) {
    if (used[detail] || calls.slice[detail] == kNoRow) continue;
    const StringId name = host.name[calls.slice[detail]];
    int8_t& answer = queues[static_cast<uint32_t>(name)];
    if (answer < 0) answer = queues_work(model.text(name));
    if (answer == 1) ++model.losses[Stat::kLaunchWithoutDeviceSlice];
  }
}

void link_data(Model& model) {
  DataDependencies& data = model.data_dependencies;
  if (data.size() == 0) return;
  const OpDetails& ops = model.op_details;
  IdMap by_node(ops.size());
  for (Row detail = 0; detail < ops.size(); ++detail) {
    if (ops.data_node[detail] != kNoNumber && ops.slice[detail] != kNoRow)
      by_node.insert(ops.data_node[detail], detail);
  }
  for (Row row = 0; row < data.size(); ++row) {
    if (data.producer_node[row] != kNoNumber) data.producer[row] = by_node.find(data.producer_node[row]);
  }
}

}  // namespace firelane
