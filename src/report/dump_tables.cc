#include "report/dump_tables.h"

#include <fmt/format.h>

#include <cstdlib>

namespace firelane::report {

namespace {

// The float's own shortest digits: 0.060606, not 0.06060599908232689.
double decimal(float number) { return std::strtod(fmt::format("{}", number).c_str(), nullptr); }

int64_t lane_number(LaneId lane) { return static_cast<int64_t>(lane); }

void write_lane(const Model& model, Row row, RowLine& out) {
  const Lanes& t = model.lanes;
  out.text("kind", name_of(t.kind[row]));
  out.id("pid", t.pid[row]);
  out.id("tid", t.tid[row]);
  out.text("process_name", t.process_name[row]);
  out.text("process_labels", t.process_labels[row]);
  out.text("name", t.name[row]);
  out.number("process_sort_index", t.process_sort_index[row]);
  out.number("sort_index", t.sort_index[row]);
  out.number("host_begin", t.host_begin[row]);
  out.number("host_end", t.host_end[row]);
  out.number("device_begin", t.device_begin[row]);
  out.number("device_end", t.device_end[row]);
}

void write_host_slice(const Model& model, Row row, RowLine& out) {
  const HostSlices& t = model.host_slices;
  out.number("lane", lane_number(t.lane[row]));
  out.number("start_ns", t.start_ns[row]);
  out.number("duration_ns", t.duration_ns[row]);
  out.text("name", t.name[row]);
  out.text("category", t.category[row]);
  out.text("kind", name_of(t.kind[row]));
  out.row("parent", t.parent[row]);
  out.number("depth", t.depth[row]);
  out.row("detail", t.detail[row]);
}

void write_op_detail(const Model& model, Row row, RowLine& out) {
  const OpDetails& t = model.op_details;
  out.row("slice", t.slice[row]);
  out.number("external_id", t.external_id[row]);
  out.number("sequence_number", t.sequence_number[row]);
  out.number("forward_thread", t.forward_thread[row]);
  out.text("input_dims", t.input_dims[row]);
  out.text("input_types", t.input_types[row]);
  out.text("input_strides", t.input_strides[row]);
  out.text("concrete_inputs", t.concrete_inputs[row]);
  out.text("stack", t.stack[row]);
  out.text("module_hierarchy", t.module_hierarchy[row]);
  out.text("overload", t.overload[row]);
  out.number("flops", t.flops[row]);
  out.row("forward", t.forward[row]);
  out.row("comm", t.comm[row]);
}

void write_call_detail(const Model& model, Row row, RowLine& out) {
  const CallDetails& t = model.call_details;
  out.row("slice", t.slice[row]);
  out.number("correlation", t.correlation[row]);
  out.number("external_id", t.external_id[row]);
  out.row("op", t.op[row]);
}

void write_device_slice(const Model& model, Row row, RowLine& out) {
  const DeviceSlices& t = model.device_slices;
  out.number("lane", lane_number(t.lane[row]));
  out.number("start_ns", t.start_ns[row]);
  out.number("duration_ns", t.duration_ns[row]);
  out.text("name", t.name[row]);
  out.text("category", t.category[row]);
  out.text("kind", name_of(t.kind[row]));
  out.number("correlation", t.correlation[row]);
  out.number("external_id", t.external_id[row]);
  out.row("launch", t.launch[row]);
  out.row("op", t.op[row]);
  out.row("detail", t.detail[row]);
  out.row("comm", t.comm[row]);
  out.number("device", t.device[row], -1);
  out.number("stream", t.stream[row]);
  out.text("window", t.window[row]);
}

void write_kernel_detail(const Model& model, Row row, RowLine& out) {
  const KernelDetails& t = model.kernel_details;
  out.row("slice", t.slice[row]);
  out.number("grid_x", t.grid_x[row], -1);
  out.number("grid_y", t.grid_y[row], -1);
  out.number("grid_z", t.grid_z[row], -1);
  out.number("block_x", t.block_x[row], -1);
  out.number("block_y", t.block_y[row], -1);
  out.number("block_z", t.block_z[row], -1);
  out.number("registers", t.registers[row], -1);
  out.number("shared_memory_bytes", t.shared_memory_bytes[row]);
  out.real("blocks_per_sm", decimal(t.blocks_per_sm[row]));
  out.real("warps_per_sm", decimal(t.warps_per_sm[row]));
  out.real("occupancy_percent", decimal(t.occupancy_percent[row]));
  out.text("occupancy_limit", name_of(t.occupancy_limit[row]));
  out.number("context", t.context[row]);
  out.number("graph_id", t.graph_id[row]);
  out.number("graph_node_id", t.graph_node_id[row]);
}

void write_copy_detail(const Model& model, Row row, RowLine& out) {
  const CopyDetails& t = model.copy_details;
  out.row("slice", t.slice[row]);
  out.number("bytes", t.bytes[row]);
  out.real("bandwidth_gb_s", decimal(t.bandwidth_gb_s[row]));
}

void write_sync_detail(const Model& model, Row row, RowLine& out) {
  const SyncDetails& t = model.sync_details;
  out.row("slice", t.slice[row]);
  out.number("wait_on_stream", t.wait_on_stream[row]);
  out.number("wait_on_correlation", t.wait_on_correlation[row]);
  out.number("wait_on_event", t.wait_on_event[row]);
}

void write_comm_detail(const Model& model, Row row, RowLine& out) {
  const CommDetails& t = model.comm_details;
  out.text("collective", t.collective[row]);
  out.text("dtype", t.dtype[row]);
  out.number("in_elements", t.in_elements[row]);
  out.number("out_elements", t.out_elements[row]);
  out.number("group_size", t.group_size[row]);
  out.text("group_name", t.group_name[row]);
  out.text("group_description", t.group_description[row]);
  out.text("group_ranks", t.group_ranks[row]);
  out.number("rank", t.rank[row]);
  out.number("source_rank", t.source_rank[row]);
  out.number("destination_rank", t.destination_rank[row]);
  out.number("sequence", t.sequence[row]);
}

void write_memory_event(const Model& model, Row row, RowLine& out) {
  const MemoryEvents& t = model.memory_events;
  out.number("time_ns", t.time_ns[row]);
  out.number("lane", lane_number(t.lane[row]));
  out.text("kind", name_of(t.kind[row]));
  out.number("device_type", t.device_type[row]);
  out.number("device", t.device[row], -1);
  out.address("address", t.address[row]);
  out.number("bytes", t.bytes[row]);
  out.number("total_allocated_bytes", t.total_allocated_bytes[row]);
  out.number("total_reserved_bytes", t.total_reserved_bytes[row]);
  out.number("stream", t.stream[row]);
  out.text("pool", t.pool[row]);
}

void write_allocator_event(const Model& model, Row row, RowLine& out) {
  const AllocatorEvents& t = model.allocator_events;
  out.number("time_ns", t.time_ns[row]);
  out.number("lane", lane_number(t.lane[row]));
  out.text("kind", name_of(t.kind[row]));
  out.number("device_type", t.device_type[row]);
  out.number("device", t.device[row], -1);
  out.address("address", t.address[row]);
  out.number("bytes", t.bytes[row]);
  out.number("stream", t.stream[row]);
  out.text("pool", t.pool[row]);
}

void write_allocator_segment(const Model& model, Row row, RowLine& out) {
  const AllocatorSegments& t = model.allocator_segments;
  out.number("time_ns", t.time_ns[row]);
  out.number("device_type", t.device_type[row]);
  out.number("device", t.device[row], -1);
  out.address("address", t.address[row]);
  out.number("bytes", t.bytes[row]);
  out.number("stream", t.stream[row]);
  out.text("pool", t.pool[row]);
  out.number("is_expandable", t.is_expandable[row]);
}

void write_allocator_block(const Model& model, Row row, RowLine& out) {
  const AllocatorBlocks& t = model.allocator_blocks;
  out.number("time_ns", t.time_ns[row]);
  out.number("device_type", t.device_type[row]);
  out.number("device", t.device[row], -1);
  out.address("address", t.address[row]);
  out.number("bytes", t.bytes[row]);
  out.text("state", name_of(t.state[row]));
}

void write_instant(const Model& model, Row row, RowLine& out) {
  const Instants& t = model.instants;
  out.number("time_ns", t.time_ns[row]);
  out.number("lane", lane_number(t.lane[row]));
  out.text("name", t.name[row]);
  out.text("category", t.category[row]);
  out.text("scope", std::string_view(&t.scope[row], 1));
}

void write_counter_track(const Model& model, Row row, RowLine& out) {
  const CounterTracks& t = model.counter_tracks;
  out.id("pid", t.pid[row]);
  out.text("name", t.name[row]);
  out.text("series", t.series[row]);
}

void write_counter_sample(const Model& model, Row row, RowLine& out) {
  const CounterSamples& t = model.counter_samples;
  out.number("time_ns", t.time_ns[row]);
  out.number("track", t.track[row]);
  out.any_real("value", t.value[row]);
}

void write_flow(const Model& model, Row row, RowLine& out) {
  const Flows& t = model.flows;
  out.text("name", t.name[row]);
  out.text("category", t.category[row]);
  out.number("id", t.id[row]);
  out.slice("from", t.from[row]);
  out.slice("to", t.to[row]);
}

void write_step(const Model& model, Row row, RowLine& out) {
  const Steps& t = model.steps;
  out.number("number", t.number[row]);
  out.row("slice", t.slice[row]);
  out.number("start_ns", t.start_ns[row]);
  out.number("duration_ns", t.duration_ns[row]);
}

void write_metadata(const Model& model, Row row, RowLine& out) {
  out.text("key", model.info.metadata[row].key);
  out.text("json", model.info.metadata[row].json);
}

void write_loss(const Model& model, Row row, RowLine& out) {
  out.text("name", kStats[row].name);
  out.number("count", static_cast<int64_t>(model.losses.counts[row]));
}

}  // namespace

const std::vector<DumpTable>& dump_tables() {
  static const std::vector<DumpTable> tables = {
      {"lanes", [](const Model& m) { return m.lanes.size(); }, write_lane},
      {"host_slices", [](const Model& m) { return m.host_slices.size(); }, write_host_slice,
       [](const Model& m, Row row) { return m.host_slices.source[row]; }},
      {"op_details", [](const Model& m) { return m.op_details.size(); }, write_op_detail},
      {"call_details", [](const Model& m) { return m.call_details.size(); }, write_call_detail},
      {"device_slices", [](const Model& m) { return m.device_slices.size(); }, write_device_slice,
       [](const Model& m, Row row) { return m.device_slices.source[row]; }},
      {"kernel_details", [](const Model& m) { return m.kernel_details.size(); }, write_kernel_detail},
      {"copy_details", [](const Model& m) { return m.copy_details.size(); }, write_copy_detail},
      {"sync_details", [](const Model& m) { return m.sync_details.size(); }, write_sync_detail},
      {"comm_details", [](const Model& m) { return m.comm_details.size(); }, write_comm_detail},
      {"memory_events", [](const Model& m) { return m.memory_events.size(); }, write_memory_event,
       [](const Model& m, Row row) { return m.memory_events.source[row]; }},
      {"allocator_events", [](const Model& m) { return m.allocator_events.size(); }, write_allocator_event},
      {"allocator_segments", [](const Model& m) { return m.allocator_segments.size(); }, write_allocator_segment},
      {"allocator_blocks", [](const Model& m) { return m.allocator_blocks.size(); }, write_allocator_block},
      {"instants", [](const Model& m) { return m.instants.size(); }, write_instant,
       [](const Model& m, Row row) { return m.instants.source[row]; }},
      {"counter_tracks", [](const Model& m) { return m.counter_tracks.size(); }, write_counter_track},
      {"counter_samples", [](const Model& m) { return m.counter_samples.size(); }, write_counter_sample},
      {"flows", [](const Model& m) { return m.flows.size(); }, write_flow},
      {"steps", [](const Model& m) { return m.steps.size(); }, write_step},
      {"metadata", [](const Model& m) { return m.info.metadata.size(); }, write_metadata},
      {"losses", [](const Model&) { return kStatCount; }, write_loss},
  };
  return tables;
}

}  // namespace firelane::report
