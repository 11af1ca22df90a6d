#include "model/same.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace firelane {

namespace {

class Comparer {
 public:
  Comparer(const Model& a, const Model& b) : a_(a), b_(b) {}

  std::optional<std::string> run() {
    info();
    lanes();
    host_slices();
    device_slices();
    points();
    counters();
    flows();
    steps();
    return std::move(difference_);
  }

 private:
  void report(std::string_view what, size_t row, const std::string& x, const std::string& y) {
    if (difference_) return;
    difference_ = std::string(what) + "[" + std::to_string(row) + "]: " + x + " / " + y;
  }

  std::string words(const Model&, std::integral auto value) const { return std::to_string(value); }
  std::string words(const Model&, std::floating_point auto value) const { return std::to_string(value); }
  std::string words(const Model& m, StringId id) const { return std::string(m.text(id)); }
  std::string words(const Model& m, const TraceId& id) const { return m.id_text(id); }
  std::string words(const Model&, const SliceRef& ref) const {
    return (ref.on_device ? "device " : "host ") + std::to_string(ref.row);
  }
  std::string words(const Model&, const std::string& text) const { return text; }
  template <typename T>
    requires std::is_enum_v<T>
  std::string words(const Model&, T value) const {
    return std::to_string(static_cast<int64_t>(value));
  }

  template <typename T>
  bool equal(const T& x, const T& y) const {
    if constexpr (std::is_same_v<T, StringId>) {
      return a_.text(x) == b_.text(y);
    } else if constexpr (std::is_same_v<T, TraceId>) {
      return x.number == y.number && a_.text(x.text) == b_.text(y.text);
    } else if constexpr (std::is_floating_point_v<T>) {
      return x == y || (std::isnan(x) && std::isnan(y));
    } else {
      return x == y;
    }
  }

  template <typename T>
  void value(std::string_view what, size_t row, const T& x, const T& y) {
    if (!difference_ && !equal(x, y)) report(what, row, words(a_, x), words(b_, y));
  }

  // The same column of both models, where rows have the same number in both.
  template <typename T>
  void column(std::string_view what, const std::vector<T>& x, const std::vector<T>& y) {
    value(std::string(what) + " rows", 0, x.size(), y.size());
    for (size_t row = 0; !difference_ && row < x.size(); ++row) value(what, row, x[row], y[row]);
  }

  static std::vector<MetadataEntry> recorded_metadata(const Model& m) {
    std::vector<MetadataEntry> entries;
    for (const MetadataEntry& entry : m.info.metadata) {
      // The last three are compared by their meaning.
      const auto own = {"schemaVersion",    "displayTimeUnit", "traceName",
                        "deviceProperties", "distributedInfo", "baseTimeNanoseconds"};
      if (std::find(own.begin(), own.end(), entry.key) == own.end()) entries.push_back(entry);
    }
    return entries;
  }

  void info() {
    value("info.start_ns", 0, a_.info.start_ns, b_.info.start_ns);
    value("info.duration_ns", 0, a_.info.duration_ns, b_.info.duration_ns);
    value("info.base_time_ns", 0, a_.info.base_time_ns, b_.info.base_time_ns);
    value("info.devices", 0, a_.info.devices.size(), b_.info.devices.size());
    for (size_t i = 0; !difference_ && i < a_.info.devices.size(); ++i) device(i);
    const DistributedInfo& x = a_.info.distributed;
    const DistributedInfo& y = b_.info.distributed;
    value("info.distributed.present", 0, x.present, y.present);
    value("info.distributed.backend", 0, x.backend, y.backend);
    value("info.distributed.rank", 0, x.rank, y.rank);
    value("info.distributed.world_size", 0, x.world_size, y.world_size);
    value("info.distributed.nccl_version", 0, x.nccl_version, y.nccl_version);
    const auto ours = recorded_metadata(a_);
    const auto theirs = recorded_metadata(b_);
    value("info.metadata", 0, ours.size(), theirs.size());
    for (size_t i = 0; !difference_ && i < ours.size(); ++i) {
      value("info.metadata.key", i, ours[i].key, theirs[i].key);
      value("info.metadata.json", i, ours[i].json, theirs[i].json);
    }
  }

  void device(size_t i) {
    const auto fields = [](const DeviceProperties& d) {
      return std::vector<int64_t>{d.id,
                                  d.total_memory_bytes,
                                  d.compute_major,
                                  d.compute_minor,
                                  d.multiprocessors,
                                  d.max_threads_per_multiprocessor,
                                  d.registers_per_multiprocessor,
                                  d.shared_memory_per_multiprocessor_bytes,
                                  d.warp_size};
    };
    value("info.devices.name", i, a_.info.devices[i].name, b_.info.devices[i].name);
    column("info.devices", fields(a_.info.devices[i]), fields(b_.info.devices[i]));
  }

  void lanes() {
    const Lanes& x = a_.lanes;
    const Lanes& y = b_.lanes;
    column("lanes.kind", x.kind, y.kind);
    column("lanes.pid", x.pid, y.pid);
    column("lanes.tid", x.tid, y.tid);
    column("lanes.process_name", x.process_name, y.process_name);
    column("lanes.process_labels", x.process_labels, y.process_labels);
    column("lanes.name", x.name, y.name);
    column("lanes.process_sort_index", x.process_sort_index, y.process_sort_index);
    column("lanes.sort_index", x.sort_index, y.sort_index);
    column("lanes.host_end", x.host_end, y.host_end);
    column("lanes.device_end", x.device_end, y.device_end);
  }

  void host_slices() {
    const HostSlices& x = a_.host_slices;
    const HostSlices& y = b_.host_slices;
    column("host_slices.lane", x.lane, y.lane);
    column("host_slices.start_ns", x.start_ns, y.start_ns);
    column("host_slices.duration_ns", x.duration_ns, y.duration_ns);
    column("host_slices.name", x.name, y.name);
    column("host_slices.category", x.category, y.category);
    column("host_slices.kind", x.kind, y.kind);
    column("host_slices.parent", x.parent, y.parent);
    column("host_slices.depth", x.depth, y.depth);
    for (Row row = 0; !difference_ && row < x.size(); ++row) {
      value("host_slices.detail present", row, x.detail[row] == kNoRow, y.detail[row] == kNoRow);
      if (difference_ || x.detail[row] == kNoRow) continue;
      is_call(x.kind[row]) ? call(row, x.detail[row], y.detail[row]) : op(row, x.detail[row], y.detail[row]);
    }
  }

  void op(Row row, Row i, Row k) {
    const OpDetails& x = a_.op_details;
    const OpDetails& y = b_.op_details;
    value("op external_id of slice", row, x.external_id[i], y.external_id[k]);
    value("op sequence_number of slice", row, x.sequence_number[i], y.sequence_number[k]);
    value("op forward_thread of slice", row, x.forward_thread[i], y.forward_thread[k]);
    value("op input_dims of slice", row, x.input_dims[i], y.input_dims[k]);
    value("op input_types of slice", row, x.input_types[i], y.input_types[k]);
    value("op input_strides of slice", row, x.input_strides[i], y.input_strides[k]);
    value("op concrete_inputs of slice", row, x.concrete_inputs[i], y.concrete_inputs[k]);
    value("op stack of slice", row, x.stack[i], y.stack[k]);
    value("op module_hierarchy of slice", row, x.module_hierarchy[i], y.module_hierarchy[k]);
    value("op overload of slice", row, x.overload[i], y.overload[k]);
    value("op flops of slice", row, x.flops[i], y.flops[k]);
    value("op forward of slice", row, x.forward[i], y.forward[k]);
    comm(row, x.comm[i], y.comm[k]);
  }

  void call(Row row, Row i, Row k) {
    value("call correlation of slice", row, a_.call_details.correlation[i], b_.call_details.correlation[k]);
    value("call external_id of slice", row, a_.call_details.external_id[i], b_.call_details.external_id[k]);
    value("call op of slice", row, a_.call_details.op[i], b_.call_details.op[k]);
  }

  void comm(Row row, Row i, Row k) {
    value("comm present at slice", row, i == kNoRow, k == kNoRow);
    if (difference_ || i == kNoRow) return;
    const CommDetails& x = a_.comm_details;
    const CommDetails& y = b_.comm_details;
    value("comm collective of slice", row, x.collective[i], y.collective[k]);
    value("comm dtype of slice", row, x.dtype[i], y.dtype[k]);
    value("comm in_elements of slice", row, x.in_elements[i], y.in_elements[k]);
    value("comm out_elements of slice", row, x.out_elements[i], y.out_elements[k]);
    value("comm group_size of slice", row, x.group_size[i], y.group_size[k]);
    value("comm group_name of slice", row, x.group_name[i], y.group_name[k]);
    value("comm group_description of slice", row, x.group_description[i], y.group_description[k]);
    value("comm group_ranks of slice", row, x.group_ranks[i], y.group_ranks[k]);
    value("comm rank of slice", row, x.rank[i], y.rank[k]);
    value("comm source_rank of slice", row, x.source_rank[i], y.source_rank[k]);
    value("comm destination_rank of slice", row, x.destination_rank[i], y.destination_rank[k]);
    value("comm sequence of slice", row, x.sequence[i], y.sequence[k]);
  }

  void device_slices() {
    const DeviceSlices& x = a_.device_slices;
    const DeviceSlices& y = b_.device_slices;
    column("device_slices.lane", x.lane, y.lane);
    column("device_slices.start_ns", x.start_ns, y.start_ns);
    column("device_slices.duration_ns", x.duration_ns, y.duration_ns);
    column("device_slices.name", x.name, y.name);
    column("device_slices.category", x.category, y.category);
    column("device_slices.kind", x.kind, y.kind);
    column("device_slices.correlation", x.correlation, y.correlation);
    column("device_slices.external_id", x.external_id, y.external_id);
    column("device_slices.launch", x.launch, y.launch);
    column("device_slices.op", x.op, y.op);
    column("device_slices.device", x.device, y.device);
    column("device_slices.stream", x.stream, y.stream);
    for (Row row = 0; !difference_ && row < x.size(); ++row) {
      comm(row, x.comm[row], y.comm[row]);
      value("device_slices.detail present", row, x.detail[row] == kNoRow, y.detail[row] == kNoRow);
      if (difference_ || x.detail[row] == kNoRow) continue;
      if (x.kind[row] == DeviceKind::kKernel) kernel(row, x.detail[row], y.detail[row]);
      if (x.kind[row] == DeviceKind::kCopy || x.kind[row] == DeviceKind::kSet) copy(row, x.detail[row], y.detail[row]);
      if (x.kind[row] == DeviceKind::kSync) sync(row, x.detail[row], y.detail[row]);
    }
  }

  void kernel(Row row, Row i, Row k) {
    const KernelDetails& x = a_.kernel_details;
    const KernelDetails& y = b_.kernel_details;
    value("kernel grid_x of slice", row, x.grid_x[i], y.grid_x[k]);
    value("kernel grid_y of slice", row, x.grid_y[i], y.grid_y[k]);
    value("kernel grid_z of slice", row, x.grid_z[i], y.grid_z[k]);
    value("kernel block_x of slice", row, x.block_x[i], y.block_x[k]);
    value("kernel block_y of slice", row, x.block_y[i], y.block_y[k]);
    value("kernel block_z of slice", row, x.block_z[i], y.block_z[k]);
    value("kernel registers of slice", row, x.registers[i], y.registers[k]);
    value("kernel shared_memory_bytes of slice", row, x.shared_memory_bytes[i], y.shared_memory_bytes[k]);
    value("kernel blocks_per_sm of slice", row, x.blocks_per_sm[i], y.blocks_per_sm[k]);
    value("kernel warps_per_sm of slice", row, x.warps_per_sm[i], y.warps_per_sm[k]);
    value("kernel occupancy_percent of slice", row, x.occupancy_percent[i], y.occupancy_percent[k]);
    value("kernel context of slice", row, x.context[i], y.context[k]);
    value("kernel graph_id of slice", row, x.graph_id[i], y.graph_id[k]);
    value("kernel graph_node_id of slice", row, x.graph_node_id[i], y.graph_node_id[k]);
  }

  void copy(Row row, Row i, Row k) {
    value("copy bytes of slice", row, a_.copy_details.bytes[i], b_.copy_details.bytes[k]);
    value("copy bandwidth of slice", row, a_.copy_details.bandwidth_gb_s[i], b_.copy_details.bandwidth_gb_s[k]);
  }

  void sync(Row row, Row i, Row k) {
    const SyncDetails& x = a_.sync_details;
    const SyncDetails& y = b_.sync_details;
    value("sync wait_on_stream of slice", row, x.wait_on_stream[i], y.wait_on_stream[k]);
    value("sync wait_on_correlation of slice", row, x.wait_on_correlation[i], y.wait_on_correlation[k]);
    value("sync wait_on_event of slice", row, x.wait_on_event[i], y.wait_on_event[k]);
  }

  void points() {
    const MemoryEvents& x = a_.memory_events;
    const MemoryEvents& y = b_.memory_events;
    column("memory_events.time_ns", x.time_ns, y.time_ns);
    column("memory_events.lane", x.lane, y.lane);
    column("memory_events.kind", x.kind, y.kind);
    column("memory_events.device_type", x.device_type, y.device_type);
    column("memory_events.device", x.device, y.device);
    column("memory_events.address", x.address, y.address);
    column("memory_events.bytes", x.bytes, y.bytes);
    column("memory_events.total_allocated_bytes", x.total_allocated_bytes, y.total_allocated_bytes);
    column("memory_events.total_reserved_bytes", x.total_reserved_bytes, y.total_reserved_bytes);
    column("instants.time_ns", a_.instants.time_ns, b_.instants.time_ns);
    column("instants.lane", a_.instants.lane, b_.instants.lane);
    column("instants.name", a_.instants.name, b_.instants.name);
    column("instants.category", a_.instants.category, b_.instants.category);
    column("instants.scope", a_.instants.scope, b_.instants.scope);
  }

  // Tracks are numbered in the order in which they were met: compared by what they are.
  void counters() {
    using Sample = std::tuple<int64_t, std::string, std::string_view, std::string_view, double>;
    const auto samples = [](const Model& m) {
      std::vector<Sample> result;
      for (size_t i = 0; i < m.counter_samples.size(); ++i) {
        const uint32_t track = m.counter_samples.track[i];
        result.emplace_back(m.counter_samples.time_ns[i], m.id_text(m.counter_tracks.pid[track]),
                            m.text(m.counter_tracks.name[track]), m.text(m.counter_tracks.series[track]),
                            m.counter_samples.value[i]);
      }
      std::sort(result.begin(), result.end());
      return result;
    };
    const auto ours = samples(a_);
    const auto theirs = samples(b_);
    value("counter_samples rows", 0, ours.size(), theirs.size());
    for (size_t i = 0; !difference_ && i < ours.size(); ++i) {
      value("counter_samples.time_ns", i, std::get<0>(ours[i]), std::get<0>(theirs[i]));
      value("counter_tracks.pid of sample", i, std::get<1>(ours[i]), std::get<1>(theirs[i]));
      value("counter_tracks.name of sample", i, std::string(std::get<2>(ours[i])), std::string(std::get<2>(theirs[i])));
      value("counter_tracks.series of sample", i, std::string(std::get<3>(ours[i])),
            std::string(std::get<3>(theirs[i])));
      value("counter_samples.value", i, std::get<4>(ours[i]), std::get<4>(theirs[i]));
    }
  }

  // Sorted by category, which is numbered in the order of reading: compared in an order of its own.
  void flows() {
    const auto order = [](const Model& m) {
      std::vector<size_t> rows(m.flows.size());
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
      const auto key = [&](size_t i) {
        const Flows& f = m.flows;
        return std::tuple(m.text(f.category[i]), m.text(f.name[i]), f.id[i], f.from[i].on_device, f.from[i].row,
                          f.to[i].on_device, f.to[i].row);
      };
      std::sort(rows.begin(), rows.end(), [&](size_t i, size_t k) { return key(i) < key(k); });
      return rows;
    };
    value("flows rows", 0, a_.flows.size(), b_.flows.size());
    if (difference_) return;
    const auto ours = order(a_);
    const auto theirs = order(b_);
    for (size_t i = 0; !difference_ && i < ours.size(); ++i) {
      const size_t x = ours[i];
      const size_t y = theirs[i];
      value("flows.category", i, a_.flows.category[x], b_.flows.category[y]);
      value("flows.name", i, a_.flows.name[x], b_.flows.name[y]);
      value("flows.id", i, a_.flows.id[x], b_.flows.id[y]);
      value("flows.from", i, a_.flows.from[x], b_.flows.from[y]);
      value("flows.to", i, a_.flows.to[x], b_.flows.to[y]);
    }
  }

  void steps() {
    column("steps.number", a_.steps.number, b_.steps.number);
    column("steps.slice", a_.steps.slice, b_.steps.slice);
    column("steps.start_ns", a_.steps.start_ns, b_.steps.start_ns);
    column("steps.duration_ns", a_.steps.duration_ns, b_.steps.duration_ns);
  }

  const Model& a_;
  const Model& b_;
  std::optional<std::string> difference_;
};

}  // namespace

std::optional<std::string> first_difference(const Model& a, const Model& b) { return Comparer(a, b).run(); }

}  // namespace firelane
