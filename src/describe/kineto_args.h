// What the model knows about an event, under the names that Kineto gives to args.
//
// One list for all formats that have args: visit_host_args(model, row, args) and its siblings
// call, for each value that is there,
//   args.number(key, int64_t)   args.real(key, float)   args.triple(key, x, y, z)
//   args.text(key, StringId)    args.json(key, StringId)    -- text that is JSON already
//   args.word(key, std::string_view)                        -- of a kind
//   args.object(StringId)                                   -- a JSON object whose fields are args
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "describe/call_site.h"
#include "model/model.h"

namespace firelane::describe {

// Leaves out what is absent.
template <typename Args>
struct PresentArgs {
  Args& args;

  void number(std::string_view key, int64_t value) {
    if (value != kNoNumber) args.number(key, value);
  }
  // Where the model writes "absent" as a negative number.
  void small_number(std::string_view key, int32_t value) {
    if (value >= 0) args.number(key, value);
  }
  void real(std::string_view key, float value) {
    if (value >= 0 && std::isfinite(value)) args.real(key, value);
  }
  void triple(std::string_view key, int32_t x, int32_t y, int32_t z) {
    if (x >= 0) args.triple(key, x, y, z);
  }
  void text(std::string_view key, StringId value) {
    if (value != kNoString) args.text(key, value);
  }
  void word(std::string_view key, std::string_view value) {
    if (!value.empty()) args.word(key, value);
  }
  void json(std::string_view key, StringId value) {
    if (value != kNoString) args.json(key, value);
  }
  void object(StringId value) {
    if (value != kNoString) args.object(value);
  }
};

// What Kineto writes and a .lane file does not repeat for each event is added for ours alone: other traces say
// themselves what they have to say.
inline bool is_our_recording(const Model& model) { return model.info.origin == Origin::kFirelane; }

template <typename Args>
void visit_comm_args(const Model& model, Row comm, PresentArgs<Args>& args) {
  if (comm == kNoRow) return;
  const CommDetails& c = model.comm_details;
  // For a range of a CPU backend, of which only the name is known.
  if (runs_on_host(c.backend[comm]) && c.dtype[comm] == kNoString && c.group_name[comm] == kNoString) return;
  args.text("Collective name", c.collective[comm]);
  args.text("dtype", c.dtype[comm]);
  args.number("In msg nelems", c.in_elements[comm]);
  args.number("Out msg nelems", c.out_elements[comm]);
  args.number("Group size", c.group_size[comm]);
  args.text("Process Group Name", c.group_name[comm]);
  args.text("Process Group Description", c.group_description[comm]);
  args.text("Process Group Ranks", c.group_ranks[comm]);  // lists are texts in Kineto: "[0, ..., 63]"
  args.text("In split size", c.in_split_sizes[comm]);
  args.text("Out split size", c.out_split_sizes[comm]);
  args.number("Global rank start", c.global_rank_start[comm]);
  args.number("Global rank stride", c.global_rank_stride[comm]);
  args.number("Rank", c.rank[comm]);
  args.number("Src Rank", c.source_rank[comm]);
  args.number("Dst Rank", c.destination_rank[comm]);
  args.number("Seq", c.sequence[comm]);
  args.word("State", name_of(c.state[comm]));
}

template <typename Args>
void visit_kernel_args(const Model& model, Row detail, PresentArgs<Args>& args) {
  const KernelDetails& k = model.kernel_details;
  if (is_our_recording(model)) args.number("queued", 0);  // CUPTI's word for: not asked for
  args.number("context", k.context[detail]);
  args.small_number("registers per thread", k.registers[detail]);
  args.number("shared memory", k.shared_memory_bytes[detail]);
  args.real("blocks per SM", k.blocks_per_sm[detail]);
  args.real("warps per SM", k.warps_per_sm[detail]);
  args.triple("grid", k.grid_x[detail], k.grid_y[detail], k.grid_z[detail]);
  args.triple("block", k.block_x[detail], k.block_y[detail], k.block_z[detail]);
  const float occupancy = k.occupancy_percent[detail];
  args.real("est. achieved occupancy %",
            is_our_recording(model) ? std::round(occupancy) : occupancy);  // Kineto's: whole
  args.number("graph id", k.graph_id[detail]);
  args.number("graph node id", k.graph_node_id[detail]);
  args.number("flops", k.flops[detail]);
  args.number("bytes_accessed", k.bytes_accessed[detail]);
  args.text("hlo_category", k.op_category[detail]);
  args.text("hlo_op", k.op_name[detail]);
  args.text("program", k.program[detail]);
}

// In our own traces work has no id of the op behind it: links are found by thread and time. Tools for Kineto's traces
// look for the id. kNoNumber: no op, or another's trace, which says what it has to say.
inline int64_t external_id_by_link(const Model& model, Row row) {
  if (!is_our_recording(model)) return kNoNumber;
  const HostSlices& host = model.host_slices;
  while (row != kNoRow && host.kind[row] != HostKind::kOp) row = host.parent[row];
  return row == kNoRow || host.detail[row] == kNoRow ? kNoNumber : model.op_details.external_id[host.detail[row]];
}

// "8 read 4096; 9 overwrite; - read 64": node, what for, bytes; - for what was there before the recording.
inline std::string data_dependencies_text(const Model& model, Row detail) {
  const DataDependencies& data = model.data_dependencies;
  const auto [begin, end] = std::equal_range(data.op.begin(), data.op.end(), detail);
  std::string out;
  for (auto at = begin; at != end; ++at) {
    const auto row = static_cast<size_t>(at - data.op.begin());
    const int64_t node = data.producer_node[row];
    out += (out.empty() ? "" : "; ") + (node == kNoNumber ? "-" : std::to_string(node)) + " " +
           std::string(name_of(data.use[row]));
    if (data.bytes[row] != kNoNumber) out += " " + std::to_string(data.bytes[row]);
  }
  return out;
}

template <typename Args>
void visit_host_args(const Model& model, Row row, Args& receiver) {
  PresentArgs<Args> args{receiver};
  const HostKind kind = model.host_slices.kind[row];
  if (kind == HostKind::kPython) args.word("CallFrom", call_from(model, row));
  const Row detail = model.host_slices.detail[row];
  if (detail == kNoRow) return;
  if (is_call(kind)) {
    const int64_t id = model.call_details.external_id[detail];
    args.number("External id", id != kNoNumber ? id : external_id_by_link(model, row));
    args.number("correlation", model.call_details.correlation[detail]);
  } else if (kind == HostKind::kOp || kind == HostKind::kAnnotation) {
    const OpDetails& op = model.op_details;
    args.number("External id", op.external_id[detail]);
    const bool has_call_id = op.call_id[detail] != kNoNumber || !is_our_recording(model);
    args.number("Record function id", has_call_id ? op.call_id[detail] : 0);  // Kineto's value for: not requested
    args.number("Sequence number", op.sequence_number[detail]);
    const bool is_forward =
        is_our_recording(model) && op.sequence_number[detail] != kNoNumber && op.forward_thread[detail] == kNoNumber;
    args.number("Fwd thread id", is_forward ? 0 : op.forward_thread[detail]);
    args.json("Concrete Inputs", op.concrete_inputs[detail]);
    args.json("Input type", op.input_types[detail]);
    args.json("Input Strides", op.input_strides[detail]);
    args.json("Input Dims", op.input_dims[detail]);
    args.text("Call stack", op.stack[detail]);
    args.text("Module Hierarchy", op.module_hierarchy[detail]);
    args.text("Overload name", op.overload[detail]);
    args.number("flops", op.flops[detail]);
    args.number("Data node", op.data_node[detail]);
    args.word("Data dependencies", data_dependencies_text(model, detail));
    args.object(op.more_args[detail]);
    visit_comm_args(model, op.comm[detail], args);
  }
}

template <typename Args>
void visit_device_args(const Model& model, Row row, Args& receiver) {
  PresentArgs<Args> args{receiver};
  const DeviceSlices& d = model.device_slices;
  const Row detail = d.detail[row];
  const int64_t id = d.external_id[row];
  args.number("External id", id != kNoNumber ? id : external_id_by_link(model, d.op[row]));
  args.small_number("device", d.device[row]);
  args.number("stream", d.stream[row]);
  args.number("correlation", d.correlation[row]);
  args.word("window", name_of(d.window[row]));
  if (detail != kNoRow && d.kind[row] == DeviceKind::kKernel) visit_kernel_args(model, detail, args);
  if (detail != kNoRow && (d.kind[row] == DeviceKind::kCopy || d.kind[row] == DeviceKind::kSet)) {
    const CopyDetails& c = model.copy_details;
    args.number("context", c.context[detail]);
    args.number("fromDevice", c.source_device[detail]);
    args.number("toDevice", c.target_device[detail]);
    args.number("bytes", c.bytes[detail]);
    args.real("memory bandwidth (GB/s)", c.bandwidth_gb_s[detail]);
    args.number("graph id", c.graph_id[detail]);
    args.number("graph node id", c.graph_node_id[detail]);
  }
  if (detail != kNoRow && d.kind[row] == DeviceKind::kSync) {
    args.text("cuda_sync_kind", d.name[row]);
    args.number("context", model.sync_details.context[detail]);
    args.number("wait_on_stream", model.sync_details.wait_on_stream[detail]);
    args.number("wait_on_cuda_event_record_corr_id", model.sync_details.wait_on_correlation[detail]);
    args.number("wait_on_cuda_event_id", model.sync_details.wait_on_event[detail]);
  }
  visit_comm_args(model, d.comm[row], args);
}

template <typename Args>
void visit_memory_args(const Model& model, Row row, Args& receiver) {
  PresentArgs<Args> args{receiver};
  const MemoryEvents& m = model.memory_events;
  args.number("Total Reserved", m.total_reserved_bytes[row]);
  args.number("Total Allocated", m.total_allocated_bytes[row]);
  args.number("Bytes", m.bytes[row]);
  args.number("Device Id", m.device[row]);
  args.number("Device Type", m.device_type[row]);
  if (m.kind[row] != MemoryEventKind::kOutOfMemory) args.number("Addr", static_cast<int64_t>(m.address[row]));
  args.number("Stream", m.stream[row]);
  args.text("Pool", m.pool[row]);
}

}  // namespace firelane::describe
