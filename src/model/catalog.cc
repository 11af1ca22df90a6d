#include "model/catalog.h"

#include <charconv>
#include <type_traits>
#include <utility>

namespace firelane {

namespace {

using Kind = Cell::Kind;

Cell to_cell(const Model&, int64_t value) { return value == kNoNumber ? Cell{} : Cell::of(value); }
Cell to_cell(const Model&, int32_t value) { return value < 0 ? Cell{} : Cell::of(value); }
Cell to_cell(const Model&, uint16_t value) { return Cell::of(value); }
Cell to_cell(const Model&, uint64_t value) { return Cell::of(static_cast<int64_t>(value)); }
Cell to_cell(const Model&, Row value) { return value == kNoRow ? Cell{} : Cell::of(value); }
Cell to_cell(const Model&, LaneId value) { return Cell::of(static_cast<int64_t>(value)); }
Cell to_cell(const Model&, double value) { return Cell::of_real(value); }
// The shortest decimal that names the float: 12.3, not 12.300000190734863.
Cell to_cell(const Model&, float value) {
  if (value < 0) return {};
  char digits[32];
  const char* end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  double shortest = 0;
  std::from_chars(digits, end, shortest);
  return Cell::of_real(shortest);
}
Cell to_cell(const Model& m, StringId value) { return value == kNoString ? Cell{} : Cell::of_text(m.text(value)); }
Cell to_cell(const Model&, HostKind value) { return Cell::of_text(name_of(value)); }
Cell to_cell(const Model&, DeviceKind value) { return Cell::of_text(name_of(value)); }
Cell to_cell(const Model&, LaneKind value) { return Cell::of_text(name_of(value)); }
Cell to_cell(const Model&, MemoryKind value) { return Cell::of_text(name_of(value)); }
Cell to_cell(const Model&, AllocatorEventKind value) { return Cell::of_text(name_of(value)); }
Cell to_cell(const Model&, AllocatorBlockState value) { return Cell::of_text(name_of(value)); }
Cell to_cell(const Model&, OccupancyLimit value) {
  return value == OccupancyLimit::kUnknown ? Cell{} : Cell::of_text(name_of(value));
}
Cell to_cell(const Model&, char scope) {
  return Cell::of_text(scope == 'g' ? "global" : scope == 'p' ? "process" : "thread");
}
Cell to_cell(const Model& m, const TraceId& id) {
  return id.text != kNoString ? to_cell(m, id.text) : to_cell(m, id.number);
}
Cell text_cell(const std::string& text) { return text.empty() ? Cell{} : Cell::of_text(text); }

template <typename T>
constexpr Kind kind_of() {
  if constexpr (std::is_floating_point_v<T>) return Kind::kReal;
  if constexpr (std::is_same_v<T, StringId> || std::is_same_v<T, HostKind> || std::is_same_v<T, DeviceKind> ||
                std::is_same_v<T, LaneKind> || std::is_same_v<T, MemoryKind> || std::is_same_v<T, OccupancyLimit> ||
                std::is_same_v<T, AllocatorEventKind> || std::is_same_v<T, AllocatorBlockState> ||
                std::is_same_v<T, char>) {
    return Kind::kText;
  }
  return Kind::kInteger;
}

// A column that is a vector of the model: column<&Model::steps, &Steps::number>("number", "...").
template <auto Table, auto Member>
CatalogColumn column(std::string_view name, std::string_view meaning, ColumnRole role = ColumnRole::kPlain) {
  using Vector = std::remove_cvref_t<decltype((std::declval<Model>().*Table).*Member)>;
  using Value = typename Vector::value_type;
  CatalogColumn result{.name = name,
                       .meaning = meaning,
                       .kind = kind_of<Value>(),
                       .cell = [](const Model& m, Row row) { return to_cell(m, ((m.*Table).*Member)[row]); },
                       .role = role};
  if constexpr (std::is_same_v<Value, StringId>) {
    result.ids = [](const Model& m) { return &((m.*Table).*Member); };
  }
  return result;
}

CatalogColumn id_column() {
  return {.name = "id",
          .meaning = "row number",
          .kind = Kind::kInteger,
          .cell = [](const Model&, Row row) { return Cell::of(row); },
          .role = ColumnRole::kId};
}

template <auto Table>
CatalogColumn end_column() {
  return {.name = "end_ns",
          .meaning = "start_ns + duration_ns",
          .kind = Kind::kInteger,
          .cell = [](const Model& m, Row row) { return Cell::of((m.*Table).end_ns(row)); }};
}

template <auto Table>
size_t size_of(const Model& m) {
  return (m.*Table).size();
}

CatalogTable lanes_table() {
  using T = Lanes;
  constexpr auto kT = &Model::lanes;
  return {"lanes",
          "threads and GPU streams",
          {id_column(),
           column<kT, &T::kind>("kind", "thread, stream, async or other"),
           column<kT, &T::pid>("pid", "process id; of a stream: the device index"),
           column<kT, &T::tid>("tid", "thread id; of a stream: the stream id"),
           column<kT, &T::process_name>("process_name", "name of the process"),
           column<kT, &T::process_labels>("process_labels", "CPU, GPU 0, ..."),
           column<kT, &T::name>("name", "thread or stream name"),
           column<kT, &T::process_sort_index>("process_sort_index", "order among processes"),
           column<kT, &T::sort_index>("sort_index", "order among the lanes of its process"),
           {"host_slice_count", "host slices on it", Kind::kInteger,
            [](const Model& m, Row row) { return Cell::of(m.lanes.host_end[row] - m.lanes.host_begin[row]); }},
           {"device_slice_count", "device slices on it", Kind::kInteger,
            [](const Model& m, Row row) { return Cell::of(m.lanes.device_end[row] - m.lanes.device_begin[row]); }}},
          size_of<kT>};
}

CatalogTable host_slices_table() {
  using T = HostSlices;
  constexpr auto kT = &Model::host_slices;
  return {"host_slices",
          "ops, annotations, Python functions, runtime and driver calls",
          {id_column(), column<kT, &T::lane>("lane", "lanes.id", ColumnRole::kLane),
           column<kT, &T::start_ns>("start_ns", "since the start of the trace", ColumnRole::kStart),
           column<kT, &T::duration_ns>("duration_ns", "how long it was open"), end_column<kT>(),
           column<kT, &T::name>("name", "aten::mm, ProfilerStep#3, cudaLaunchKernel"),
           column<kT, &T::category>("category", "as in the trace: cpu_op, cuda_runtime"),
           column<kT, &T::kind>("kind", "op, annotation, python, runtime, driver, overhead, span or other"),
           column<kT, &T::parent>("parent", "host_slices.id of the innermost slice around it"),
           column<kT, &T::depth>("depth", "0 = outermost"),
           column<kT, &T::detail>("detail", "op_details.id of ops and annotations, call_details.id of calls")},
          size_of<kT>,
          [](const Model& m, LaneId lane) {
            const auto l = static_cast<size_t>(lane);
            return std::pair{m.lanes.host_begin[l], m.lanes.host_end[l]};
          }};
}

CatalogTable op_details_table() {
  using T = OpDetails;
  constexpr auto kT = &Model::op_details;
  return {"op_details",
          "what only ops and annotations have",
          {id_column(), column<kT, &T::slice>("slice", "host_slices.id"),
           column<kT, &T::external_id>("external_id", "joins ops, calls and device work"),
           column<kT, &T::sequence_number>("sequence_number", "joins forward and backward ops"),
           column<kT, &T::forward_thread>("forward_thread", "torch's id of the thread of the forward op"),
           column<kT, &T::input_dims>("input_dims", "JSON: [[16, 512], []]"),
           column<kT, &T::input_types>("input_types", "JSON: [\"float\", \"Scalar\"]"),
           column<kT, &T::input_strides>("input_strides", "JSON"),
           column<kT, &T::concrete_inputs>("concrete_inputs", "JSON"),
           column<kT, &T::stack>("stack", "Python stack, innermost first, joined by ;"),
           column<kT, &T::module_hierarchy>("module_hierarchy", "TorchScript module path"),
           column<kT, &T::overload>("overload", "of an op: Tensor for aten::add.Tensor"),
           column<kT, &T::flops>("flops", "floating point operations, when the trace gives them"),
           column<kT, &T::forward>("forward", "host_slices.id of the forward op of a backward op"),
           column<kT, &T::comm>("comm", "comm_details.id")},
          size_of<kT>};
}

CatalogTable call_details_table() {
  using T = CallDetails;
  constexpr auto kT = &Model::call_details;
  return {"call_details",
          "what only runtime and driver calls have",
          {id_column(), column<kT, &T::slice>("slice", "host_slices.id"),
           column<kT, &T::correlation>("correlation", "joins the call and its device work"),
           column<kT, &T::external_id>("external_id", "joins ops, calls and device work"),
           column<kT, &T::op>("op", "host_slices.id of the op that made the call")},
          size_of<kT>};
}

CatalogTable device_slices_table() {
  using T = DeviceSlices;
  constexpr auto kT = &Model::device_slices;
  return {"device_slices",
          "kernels, copies, sets, synchronisations, device-side annotations",
          {id_column(), column<kT, &T::lane>("lane", "lanes.id", ColumnRole::kLane),
           column<kT, &T::start_ns>("start_ns", "since the start of the trace", ColumnRole::kStart),
           column<kT, &T::duration_ns>("duration_ns", "how long it ran"), end_column<kT>(),
           column<kT, &T::name>("name", "kernel name, Memcpy HtoD (Pinned -> Device)"),
           column<kT, &T::category>("category", "as in the trace: kernel, gpu_memcpy"),
           column<kT, &T::kind>("kind", "kernel, copy, set, sync, event, collective, annotation or other"),
           column<kT, &T::correlation>("correlation", "joins the call and its device work"),
           column<kT, &T::external_id>("external_id", "joins ops, calls and device work"),
           column<kT, &T::launch>("launch", "host_slices.id of the call that queued it"),
           column<kT, &T::op>("op", "host_slices.id of the op it belongs to"),
           column<kT, &T::detail>("detail", "kernel_details.id, copy_details.id or sync_details.id"),
           column<kT, &T::comm>("comm", "comm_details.id"), column<kT, &T::device>("device", "index of the GPU"),
           column<kT, &T::stream>("stream", "stream id"),
           column<kT, &T::window>("window", "began before, ends after (or both) the recording; NULL = inside")},
          size_of<kT>,
          [](const Model& m, LaneId lane) {
            const auto l = static_cast<size_t>(lane);
            return std::pair{m.lanes.device_begin[l], m.lanes.device_end[l]};
          }};
}

CatalogTable kernel_details_table() {
  using T = KernelDetails;
  constexpr auto kT = &Model::kernel_details;
  return {"kernel_details",
          "what only kernels have",
          {id_column(), column<kT, &T::slice>("slice", "device_slices.id"), column<kT, &T::grid_x>("grid_x", "blocks"),
           column<kT, &T::grid_y>("grid_y", "blocks"), column<kT, &T::grid_z>("grid_z", "blocks"),
           column<kT, &T::block_x>("block_x", "threads"), column<kT, &T::block_y>("block_y", "threads"),
           column<kT, &T::block_z>("block_z", "threads"), column<kT, &T::registers>("registers", "per thread"),
           column<kT, &T::shared_memory_bytes>("shared_memory_bytes", "static + dynamic, per block"),
           column<kT, &T::blocks_per_sm>("blocks_per_sm", "grid size / multiprocessors"),
           column<kT, &T::warps_per_sm>("warps_per_sm", "warps / multiprocessors"),
           column<kT, &T::occupancy_percent>("occupancy_percent", "estimated, achieved"),
           column<kT, &T::occupancy_limit>("occupancy_limit",
                                           "none, warps, blocks, registers, shared memory or grid: what bounds it"),
           column<kT, &T::context>("context", "CUDA context"), column<kT, &T::graph_id>("graph_id", "CUDA graph"),
           column<kT, &T::graph_node_id>("graph_node_id", "node of the CUDA graph")},
          size_of<kT>};
}

CatalogTable copy_details_table() {
  using T = CopyDetails;
  constexpr auto kT = &Model::copy_details;
  return {
      "copy_details",
      "copies and sets",
      {id_column(), column<kT, &T::slice>("slice", "device_slices.id"), column<kT, &T::bytes>("bytes", "copied or set"),
       column<kT, &T::bandwidth_gb_s>("bandwidth_gb_s", "as in the trace")},
      size_of<kT>};
}

CatalogTable sync_details_table() {
  using T = SyncDetails;
  constexpr auto kT = &Model::sync_details;
  return {"sync_details",
          "device-side synchronisation records",
          {id_column(), column<kT, &T::slice>("slice", "device_slices.id"),
           column<kT, &T::wait_on_stream>("wait_on_stream", "stream that is waited for"),
           column<kT, &T::wait_on_correlation>("wait_on_correlation", "correlation of the event record waited for"),
           column<kT, &T::wait_on_event>("wait_on_event", "event that is waited for")},
          size_of<kT>};
}

CatalogTable comm_details_table() {
  using T = CommDetails;
  constexpr auto kT = &Model::comm_details;
  return {"comm_details",
          "collectives",
          {id_column(), column<kT, &T::collective>("collective", "allreduce, ..."),
           column<kT, &T::dtype>("dtype", "element type"), column<kT, &T::in_elements>("in_elements", "elements sent"),
           column<kT, &T::out_elements>("out_elements", "elements received"),
           column<kT, &T::group_size>("group_size", "ranks in the group"),
           column<kT, &T::group_name>("group_name", "process group"),
           column<kT, &T::group_description>("group_description", "what the group is for"),
           column<kT, &T::group_ranks>("group_ranks", "JSON: [0, 1]"), column<kT, &T::rank>("rank", "own rank"),
           column<kT, &T::source_rank>("source_rank", "of a receive"),
           column<kT, &T::destination_rank>("destination_rank", "of a send"),
           column<kT, &T::sequence>("sequence", "number of the collective in its group")},
          size_of<kT>};
}

CatalogTable memory_events_table() {
  using T = MemoryEvents;
  constexpr auto kT = &Model::memory_events;
  return {"memory_events",
          "allocations and frees",
          {id_column(),
           column<kT, &T::time_ns>("time_ns", "since the start of the trace", ColumnRole::kTime),
           column<kT, &T::lane>("lane", "lanes.id"),
           column<kT, &T::kind>("kind", "alloc, free or out_of_memory"),
           column<kT, &T::device_type>("device_type", "c10::DeviceType: 0 CPU, 1 CUDA"),
           {"device", "index of the device; -1 for the CPU", Kind::kInteger,
            [](const Model& m, Row row) { return Cell::of(m.memory_events.device[row]); }},
           column<kT, &T::address>("address", "of the block"),
           column<kT, &T::bytes>("bytes", "negative = freed"),
           column<kT, &T::total_allocated_bytes>("total_allocated_bytes", "on this device after the event"),
           column<kT, &T::total_reserved_bytes>("total_reserved_bytes", "by the caching allocator"),
           column<kT, &T::stream>("stream", "handle of the stream; 0 = the default one"),
           column<kT, &T::pool>("pool", "common, or of whom: graph N, pool N")},
          size_of<kT>};
}

CatalogTable allocator_events_table() {
  using T = AllocatorEvents;
  constexpr auto kT = &Model::allocator_events;
  return {
      "allocator_events",
      "what the caching allocator did below allocations and frees",
      {id_column(), column<kT, &T::time_ns>("time_ns", "since the start of the trace", ColumnRole::kTime),
       column<kT, &T::lane>("lane", "lanes.id"),
       column<kT, &T::kind>("kind", "free_completed, segment_alloc, segment_free, segment_map or segment_unmap"),
       column<kT, &T::device_type>("device_type", "c10::DeviceType: 1 CUDA"),
       column<kT, &T::device>("device", "index of the device"), column<kT, &T::address>("address", "where it begins"),
       column<kT, &T::bytes>("bytes", "of the segment or block"),
       column<kT, &T::stream>("stream", "handle of the stream; 0 = the default one"),
       column<kT, &T::pool>("pool", "common, or of whom: graph N, pool N")},
      size_of<kT>};
}

CatalogTable allocator_segments_table() {
  using T = AllocatorSegments;
  constexpr auto kT = &Model::allocator_segments;
  return {
      "allocator_segments",
      "segments that the caching allocator held when recording began, and again after each pause",
      {id_column(), column<kT, &T::time_ns>("time_ns", "when; may lie before the trace", ColumnRole::kTime),
       column<kT, &T::device_type>("device_type", "c10::DeviceType: 1 CUDA"),
       column<kT, &T::device>("device", "index of the device"), column<kT, &T::address>("address", "where it begins"),
       column<kT, &T::bytes>("bytes", "of the segment; 0 = the device held none"),
       column<kT, &T::stream>("stream", "handle of the stream; 0 = the default one"),
       column<kT, &T::pool>("pool", "common, or of whom: graph N, pool N"),
       column<kT, &T::is_expandable>("is_expandable", "1 = mapped piece by piece")},
      size_of<kT>};
}

CatalogTable allocator_blocks_table() {
  using T = AllocatorBlocks;
  constexpr auto kT = &Model::allocator_blocks;
  return {"allocator_blocks",
          "the pieces of these segments",
          {id_column(), column<kT, &T::time_ns>("time_ns", "when; may lie before the trace", ColumnRole::kTime),
           column<kT, &T::device_type>("device_type", "c10::DeviceType: 1 CUDA"),
           column<kT, &T::device>("device", "index of the device"),
           column<kT, &T::address>("address", "where it begins"), column<kT, &T::bytes>("bytes", "of the block"),
           column<kT, &T::state>("state", "free, waiting (freed, but streams may use it) or allocated")},
          size_of<kT>};
}

CatalogTable instants_table() {
  using T = Instants;
  constexpr auto kT = &Model::instants;
  return {"instants",
          "marks without a duration",
          {id_column(), column<kT, &T::time_ns>("time_ns", "since the start of the trace", ColumnRole::kTime),
           column<kT, &T::lane>("lane", "lanes.id"), column<kT, &T::name>("name", "of the mark"),
           column<kT, &T::category>("category", "as in the trace"),
           column<kT, &T::scope>("scope", "thread, process or global")},
          size_of<kT>};
}

CatalogTable counter_tracks_table() {
  using T = CounterTracks;
  constexpr auto kT = &Model::counter_tracks;
  return {"counter_tracks",
          "counters: power, clocks, queue lengths",
          {id_column(), column<kT, &T::pid>("pid", "process id"), column<kT, &T::name>("name", "of the counter"),
           column<kT, &T::series>("series", "one counter may have several")},
          size_of<kT>};
}

CatalogTable counter_samples_table() {
  using T = CounterSamples;
  constexpr auto kT = &Model::counter_samples;
  return {"counter_samples",
          "the values of counters over time",
          {id_column(), column<kT, &T::time_ns>("time_ns", "since the start of the trace", ColumnRole::kTime),
           column<kT, &T::track>("track", "counter_tracks.id"),
           column<kT, &T::value>("value", "of the counter from this time on")},
          size_of<kT>};
}

Cell side_of(const SliceRef& ref) { return Cell::of_text(ref.on_device ? "device_slices" : "host_slices"); }

CatalogTable flows_table() {
  using T = Flows;
  constexpr auto kT = &Model::flows;
  return {"flows",
          "arrows other than op to launch to device work and forward to backward",
          {id_column(),
           column<kT, &T::name>("name", "of the arrow"),
           column<kT, &T::category>("category", "as in the trace"),
           column<kT, &T::id>("flow_id", "as in the trace"),
           {"from_table", "host_slices or device_slices", Kind::kText,
            [](const Model& m, Row row) { return side_of(m.flows.from[row]); }},
           {"from_slice", "row of from_table", Kind::kInteger,
            [](const Model& m, Row row) { return to_cell(m, m.flows.from[row].row); }},
           {"to_table", "host_slices or device_slices", Kind::kText,
            [](const Model& m, Row row) { return side_of(m.flows.to[row]); }},
           {"to_slice", "row of to_table", Kind::kInteger,
            [](const Model& m, Row row) { return to_cell(m, m.flows.to[row].row); }}},
          size_of<kT>};
}

CatalogTable steps_table() {
  using T = Steps;
  constexpr auto kT = &Model::steps;
  return {"steps",
          "iterations: ProfilerStep#N",
          {id_column(), column<kT, &T::number>("number", "N"), column<kT, &T::slice>("slice", "host_slices.id"),
           column<kT, &T::start_ns>("start_ns", "since the start of the trace", ColumnRole::kTime),
           column<kT, &T::duration_ns>("duration_ns", "of the step")},
          size_of<kT>};
}

template <auto Member>
CatalogColumn device_column(std::string_view name, std::string_view meaning) {
  return {name, meaning, Kind::kInteger,
          [](const Model& m, Row row) { return to_cell(m, m.info.devices[row].*Member); }};
}

CatalogTable devices_table() {
  using T = DeviceProperties;
  return {"devices",
          "the GPUs of the recording",
          {device_column<&T::id>("id", "index of the device"),
           {"name", "NVIDIA H200", Kind::kText,
            [](const Model& m, Row row) { return text_cell(m.info.devices[row].name); }},
           device_column<&T::total_memory_bytes>("total_memory_bytes", "of the device"),
           device_column<&T::compute_major>("compute_major", "compute capability"),
           device_column<&T::compute_minor>("compute_minor", "compute capability"),
           device_column<&T::multiprocessors>("multiprocessors", "how many"),
           device_column<&T::max_threads_per_multiprocessor>("max_threads_per_multiprocessor", "limit"),
           device_column<&T::registers_per_multiprocessor>("registers_per_multiprocessor", "limit"),
           device_column<&T::shared_memory_per_multiprocessor_bytes>("shared_memory_per_multiprocessor_bytes", "limit"),
           device_column<&T::warp_size>("warp_size", "threads")},
          [](const Model& m) { return m.info.devices.size(); }};
}

CatalogTable metadata_table() {
  return {"metadata",
          "top-level keys of the trace",
          {{"key", "trace_id, with_stack, ...", Kind::kText,
            [](const Model& m, Row row) { return text_cell(m.info.metadata[row].key); }},
           {"json", "its value as JSON text", Kind::kText,
            [](const Model& m, Row row) { return text_cell(m.info.metadata[row].json); }}},
          [](const Model& m) { return m.info.metadata.size(); }};
}

CatalogTable losses_table() {
  return {
      "losses",
      "what was skipped, repaired or left unlinked; count 0 = nothing",
      {{"name", "trace.truncated, ...", Kind::kText,
        [](const Model&, Row row) { return Cell::of_text(kStats[row].name); }},
       {"severity", "info, warning or data_loss", Kind::kText,
        [](const Model&, Row row) { return Cell::of_text(name_of(kStats[row].severity)); }},
       {"count", "events", Kind::kInteger, [](const Model& m, Row row) { return to_cell(m, m.losses.counts[row]); }},
       {"meaning", "what happened", Kind::kText,
        [](const Model&, Row row) { return Cell::of_text(kStats[row].meaning); }},
       {"remedy", "what to do", Kind::kText, [](const Model&, Row row) { return Cell::of_text(kStats[row].remedy); }}},
      [](const Model&) { return kStatCount; }};
}

}  // namespace

std::span<const CatalogTable> catalog() {
  static const std::vector<CatalogTable> tables = {lanes_table(),
                                                   host_slices_table(),
                                                   op_details_table(),
                                                   call_details_table(),
                                                   device_slices_table(),
                                                   kernel_details_table(),
                                                   copy_details_table(),
                                                   sync_details_table(),
                                                   comm_details_table(),
                                                   memory_events_table(),
                                                   allocator_events_table(),
                                                   allocator_segments_table(),
                                                   allocator_blocks_table(),
                                                   instants_table(),
                                                   counter_tracks_table(),
                                                   counter_samples_table(),
                                                   flows_table(),
                                                   steps_table(),
                                                   devices_table(),
                                                   metadata_table(),
                                                   losses_table()};
  return tables;
}

const CatalogTable* find_catalog_table(std::string_view name) {
  for (const CatalogTable& table : catalog()) {
    if (table.name == name) return &table;
  }
  return nullptr;
}

}  // namespace firelane
