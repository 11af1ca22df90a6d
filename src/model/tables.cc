// Turns the rows of all parts into the model's columns: slices sorted by (lane, start,
// longer first, file order), details in file order, points in time order.
#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "base/parallel.h"
#include "base/run_sort.h"
#include "model/assemble.h"

namespace firelane {

namespace {

// Pointers to all rows of one kind, sorted as slices are. Fills begin/end of each lane.
template <typename RawRow>
std::vector<const RawRow*> sort_by_lane(RawTrace& raw, RawVector<RawRow> RawPart::* rows,
                                        const std::vector<LaneId>& lane_map, std::vector<Row>& begin,
                                        std::vector<Row>& end, unsigned threads) {
  const size_t lane_count = begin.size();
  const auto lane_of = [&](const RawRow& row) {
    return static_cast<size_t>(lane_map[static_cast<uint32_t>(row.lane)]);
  };
  std::vector<size_t> next(lane_count + 1, 0);
  for (const RawPart& part : raw.parts) {
    for (const RawRow& row : part.*rows) ++next[lane_of(row) + 1];
  }
  for (size_t lane = 0; lane < lane_count; ++lane) {
    begin[lane] = static_cast<Row>(next[lane]);
    next[lane + 1] += next[lane];
    end[lane] = static_cast<Row>(next[lane + 1]);
  }
  std::vector<const RawRow*> order(next[lane_count]);
  for (const RawPart& part : raw.parts) {
    for (const RawRow& row : part.*rows) order[next[lane_of(row)]++] = &row;
  }
  const auto before = [](const RawRow* a, const RawRow* b) {
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->duration_ns > b->duration_ns;
  };
  parallel_ranges(
      lane_count, threads,
      [&](size_t first, size_t last) {
        for (size_t lane = first; lane < last; ++lane)
          run_sort(order.data() + begin[lane], end[lane] - begin[lane], before);
      },
      1);
  return order;
}

template <typename... Columns>
void resize_all(size_t count, Columns&... columns) {
  (columns.resize(count), ...);
}

// Appends one column of a details table: field of each raw row, part after part.
template <typename RawRow, typename T, typename Get>
void append_column(const RawTrace& raw, RawVector<RawRow> RawPart::* rows, std::vector<T>& column, const Get& get) {
  size_t count = 0;
  for (const RawPart& part : raw.parts) count += (part.*rows).size();
  column.reserve(count);
  for (const RawPart& part : raw.parts) {
    for (const RawRow& row : part.*rows) column.push_back(get(row));
  }
}

template <typename RawRow>
void free_rows(RawTrace& raw, RawVector<RawRow> RawPart::* rows) {
  for (RawPart& part : raw.parts) RawVector<RawRow>().swap(part.*rows);
}

// All rows of one kind, sorted by time.
template <typename RawRow>
std::vector<RawRow> take_sorted(RawTrace& raw, RawVector<RawRow> RawPart::* rows) {
  std::vector<RawRow> all;
  size_t count = 0;
  for (const RawPart& part : raw.parts) count += (part.*rows).size();
  all.reserve(count);
  for (const RawPart& part : raw.parts) all.insert(all.end(), (part.*rows).begin(), (part.*rows).end());
  free_rows(raw, rows);
  run_sort(all.data(), all.size(), [](const RawRow& a, const RawRow& b) { return a.time_ns < b.time_ns; });
  return all;
}

}  // namespace

void build_host_slices(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map, unsigned threads) {
  const auto order =
      sort_by_lane(raw, &RawPart::host_slices, lane_map, model.lanes.host_begin, model.lanes.host_end, threads);
  HostSlices& out = model.host_slices;
  resize_all(order.size(), out.lane, out.start_ns, out.duration_ns, out.name, out.category, out.kind, out.parent,
             out.depth, out.detail, out.source);
  size_t ops = 0;
  size_t calls = 0;
  for (const RawPart& part : raw.parts) {
    ops += part.ops.size();
    calls += part.calls.size();
  }
  model.op_details.slice.assign(ops, kNoRow);
  model.call_details.slice.assign(calls, kNoRow);
  parallel_ranges(order.size(), threads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const RawHostSlice& row = *order[i];
      out.lane[i] = lane_map[static_cast<uint32_t>(row.lane)];
      out.start_ns[i] = row.start_ns;
      out.duration_ns[i] = row.duration_ns;
      out.name[i] = row.name;
      out.category[i] = row.category;
      out.kind[i] = row.kind;
      out.detail[i] = row.detail;
      out.source[i] = row.source;
      if (row.detail == kNoRow) continue;
      (is_call(row.kind) ? model.call_details.slice : model.op_details.slice)[row.detail] = static_cast<Row>(i);
    }
  });
  free_rows(raw, &RawPart::host_slices);
}

void build_device_slices(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map) {
  const auto order =
      sort_by_lane(raw, &RawPart::device_slices, lane_map, model.lanes.device_begin, model.lanes.device_end, 1);
  size_t kernels = 0;
  size_t copies = 0;
  size_t syncs = 0;
  for (const RawPart& part : raw.parts) {
    kernels += part.kernels.size();
    copies += part.copies.size();
    syncs += part.syncs.size();
  }
  model.kernel_details.slice.assign(kernels, kNoRow);
  model.copy_details.slice.assign(copies, kNoRow);
  model.sync_details.slice.assign(syncs, kNoRow);
  DeviceSlices& out = model.device_slices;
  resize_all(order.size(), out.lane, out.start_ns, out.duration_ns, out.name, out.category, out.kind, out.correlation,
             out.external_id, out.launch, out.op, out.detail, out.comm, out.device, out.stream, out.window, out.source);
  for (size_t i = 0; i < order.size(); ++i) {
    const RawDeviceSlice& row = *order[i];
    out.lane[i] = lane_map[static_cast<uint32_t>(row.lane)];
    out.start_ns[i] = row.start_ns;
    out.duration_ns[i] = row.duration_ns;
    out.name[i] = row.name;
    out.category[i] = row.category;
    out.kind[i] = row.kind;
    out.correlation[i] = row.correlation;
    out.external_id[i] = row.external_id;
    out.launch[i] = kNoRow;
    out.op[i] = kNoRow;
    out.detail[i] = row.detail;
    out.comm[i] = row.comm;
    out.device[i] = row.device;
    out.stream[i] = row.stream;
    out.window[i] = kNoString;
    out.source[i] = row.source;
    if (row.detail == kNoRow) continue;
    std::vector<Row>& slice = row.kind == DeviceKind::kKernel ? model.kernel_details.slice
                              : row.kind == DeviceKind::kSync ? model.sync_details.slice
                                                              : model.copy_details.slice;
    slice[row.detail] = static_cast<Row>(i);
  }
  free_rows(raw, &RawPart::device_slices);
}

void build_details(RawTrace& raw, Model& model) {
#define FL_COLUMN(table, rows, RawRow, column, expression) \
  append_column(raw, &RawPart::rows, table.column, [](const RawRow& row) { return expression; })
#define FL_SAME(table, rows, RawRow, column) FL_COLUMN(table, rows, RawRow, column, row.column)

  OpDetails& op = model.op_details;
  FL_SAME(op, ops, RawOp, external_id);
  FL_SAME(op, ops, RawOp, sequence_number);
  FL_SAME(op, ops, RawOp, forward_thread);
  FL_SAME(op, ops, RawOp, input_dims);
  FL_SAME(op, ops, RawOp, input_types);
  FL_SAME(op, ops, RawOp, input_strides);
  FL_SAME(op, ops, RawOp, concrete_inputs);
  FL_SAME(op, ops, RawOp, stack);
  FL_SAME(op, ops, RawOp, module_hierarchy);
  FL_SAME(op, ops, RawOp, overload);
  FL_SAME(op, ops, RawOp, flops);
  FL_SAME(op, ops, RawOp, comm);
  op.forward.assign(op.size(), kNoRow);
  free_rows(raw, &RawPart::ops);

  CallDetails& call = model.call_details;
  FL_SAME(call, calls, RawCall, correlation);
  FL_SAME(call, calls, RawCall, external_id);
  call.op.assign(call.size(), kNoRow);
  free_rows(raw, &RawPart::calls);

  KernelDetails& kernel = model.kernel_details;
  FL_COLUMN(kernel, kernels, RawKernel, grid_x, row.grid[0]);
  FL_COLUMN(kernel, kernels, RawKernel, grid_y, row.grid[1]);
  FL_COLUMN(kernel, kernels, RawKernel, grid_z, row.grid[2]);
  FL_COLUMN(kernel, kernels, RawKernel, block_x, row.block[0]);
  FL_COLUMN(kernel, kernels, RawKernel, block_y, row.block[1]);
  FL_COLUMN(kernel, kernels, RawKernel, block_z, row.block[2]);
  FL_SAME(kernel, kernels, RawKernel, registers);
  FL_SAME(kernel, kernels, RawKernel, shared_memory_bytes);
  FL_SAME(kernel, kernels, RawKernel, blocks_per_sm);
  FL_SAME(kernel, kernels, RawKernel, warps_per_sm);
  FL_SAME(kernel, kernels, RawKernel, occupancy_percent);
  FL_SAME(kernel, kernels, RawKernel, context);
  FL_SAME(kernel, kernels, RawKernel, graph_id);
  FL_SAME(kernel, kernels, RawKernel, graph_node_id);
  free_rows(raw, &RawPart::kernels);

  FL_SAME(model.copy_details, copies, RawCopy, bytes);
  FL_SAME(model.copy_details, copies, RawCopy, bandwidth_gb_s);
  FL_SAME(model.copy_details, copies, RawCopy, context);
  FL_SAME(model.copy_details, copies, RawCopy, graph_id);
  FL_SAME(model.copy_details, copies, RawCopy, graph_node_id);
  FL_SAME(model.copy_details, copies, RawCopy, source_device);
  FL_SAME(model.copy_details, copies, RawCopy, target_device);
  FL_SAME(model.sync_details, syncs, RawSync, wait_on_stream);
  FL_SAME(model.sync_details, syncs, RawSync, wait_on_correlation);
  FL_SAME(model.sync_details, syncs, RawSync, wait_on_event);
  FL_SAME(model.sync_details, syncs, RawSync, context);

  CommDetails& comm = model.comm_details;
  FL_SAME(comm, comms, RawComm, collective);
  FL_SAME(comm, comms, RawComm, dtype);
  FL_SAME(comm, comms, RawComm, in_elements);
  FL_SAME(comm, comms, RawComm, out_elements);
  FL_SAME(comm, comms, RawComm, group_size);
  FL_SAME(comm, comms, RawComm, group_name);
  FL_SAME(comm, comms, RawComm, group_description);
  FL_SAME(comm, comms, RawComm, group_ranks);
  FL_SAME(comm, comms, RawComm, in_split_sizes);
  FL_SAME(comm, comms, RawComm, out_split_sizes);
  FL_SAME(comm, comms, RawComm, global_rank_start);
  FL_SAME(comm, comms, RawComm, global_rank_stride);
  FL_SAME(comm, comms, RawComm, rank);
  FL_SAME(comm, comms, RawComm, source_rank);
  FL_SAME(comm, comms, RawComm, destination_rank);
  FL_SAME(comm, comms, RawComm, sequence);
#undef FL_SAME
#undef FL_COLUMN
}

void build_points(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map) {
  const auto lane_of = [&](LaneId lane) { return lane_map[static_cast<uint32_t>(lane)]; };
  for (const RawMemory& row : take_sorted(raw, &RawPart::memory)) {
    MemoryEvents& out = model.memory_events;
    out.time_ns.push_back(row.time_ns);
    out.lane.push_back(lane_of(row.lane));
    out.kind.push_back(row.kind);
    out.device_type.push_back(row.device_type);
    out.device.push_back(row.device);
    out.address.push_back(row.address);
    out.bytes.push_back(row.bytes);
    out.total_allocated_bytes.push_back(row.total_allocated_bytes);
    out.total_reserved_bytes.push_back(row.total_reserved_bytes);
    out.stream.push_back(row.stream);
    out.pool.push_back(row.pool);
    out.source.push_back(row.source);
  }
  for (const RawAllocatorEvent& row : take_sorted(raw, &RawPart::allocator_events)) {
    AllocatorEvents& out = model.allocator_events;
    out.time_ns.push_back(row.time_ns);
    out.lane.push_back(lane_of(row.lane));
    out.kind.push_back(row.kind);
    out.device_type.push_back(row.device_type);
    out.device.push_back(row.device);
    out.address.push_back(row.address);
    out.bytes.push_back(row.bytes);
    out.stream.push_back(row.stream);
    out.pool.push_back(row.pool);
  }
  for (const RawAllocatorSegment& row : take_sorted(raw, &RawPart::allocator_segments)) {
    AllocatorSegments& out = model.allocator_segments;
    out.time_ns.push_back(row.time_ns);
    out.device_type.push_back(row.device_type);
    out.device.push_back(row.device);
    out.address.push_back(row.address);
    out.bytes.push_back(row.bytes);
    out.stream.push_back(row.stream);
    out.pool.push_back(row.pool);
    out.is_expandable.push_back(row.is_expandable ? 1 : 0);
  }
  for (const RawAllocatorBlock& row : take_sorted(raw, &RawPart::allocator_blocks)) {
    AllocatorBlocks& out = model.allocator_blocks;
    out.time_ns.push_back(row.time_ns);
    out.device_type.push_back(row.device_type);
    out.device.push_back(row.device);
    out.address.push_back(row.address);
    out.bytes.push_back(row.bytes);
    out.state.push_back(row.state);
  }
  for (const RawInstant& row : take_sorted(raw, &RawPart::instants)) {
    Instants& out = model.instants;
    out.time_ns.push_back(row.time_ns);
    out.lane.push_back(lane_of(row.lane));
    out.name.push_back(row.name);
    out.category.push_back(row.category);
    out.scope.push_back(row.scope);
    out.source.push_back(row.source);
  }
  // A track is (process, name, series).
  std::unordered_map<uint64_t, uint32_t> tracks;
  for (const RawCounter& row : take_sorted(raw, &RawPart::counters)) {
    const TraceId pid = row.pid;
    const uint64_t key = mix_hash(mix_hash(static_cast<uint64_t>(pid.number), static_cast<uint32_t>(pid.text)),
                                  uint64_t{static_cast<uint32_t>(row.name)} << 32 | static_cast<uint32_t>(row.series));
    const auto [at, added] = tracks.try_emplace(key, static_cast<uint32_t>(model.counter_tracks.size()));
    if (added) {
      model.counter_tracks.pid.push_back(pid);
      model.counter_tracks.name.push_back(row.name);
      model.counter_tracks.series.push_back(row.series);
    }
    model.counter_samples.time_ns.push_back(row.time_ns);
    model.counter_samples.track.push_back(at->second);
    model.counter_samples.value.push_back(row.value);
  }
}

}  // namespace firelane
