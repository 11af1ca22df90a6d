// The tables of the model and their columns, each named once.
//
// SQL and CSV (model/catalog.h), `firelane dump`, Arrow and first_difference() are made from these lists; each decides
// by the type of a column how its values look. A new column of model.h gets its line here.
//
//   each_column(kStepColumns, [&](auto column) { print(column.name, column.of(model.steps)[row]); });
#pragma once

#include <string_view>
#include <tuple>

#include "model/model.h"

namespace firelane {

// What a reader may use to find rows without looking at all of them.
enum class ColumnRole : uint8_t {
  kPlain,
  kId,         // equals the row number
  kLane,       // the lane of a slice: its rows are lanes.*_begin .. *_end
  kLaneBound,  // lanes.*_begin and *_end
  kTime,       // the table is sorted by it
  kStart,      // sorted by it within each lane
};

// An enumeration with words. Where a value may be absent, the first enumerator says so, and its word is "".
template <typename T>
concept IsKind = requires(T kind) { name_of(kind); };

constexpr size_t count_of(HostKind) { return kHostKindCount; }
constexpr size_t count_of(DeviceKind) { return kDeviceKindCount; }
constexpr size_t count_of(LaneKind) { return static_cast<size_t>(LaneKind::kOther) + 1; }
constexpr size_t count_of(MemoryKind) { return static_cast<size_t>(MemoryKind::kOutOfMemory) + 1; }
constexpr size_t count_of(OccupancyLimit) { return kOccupancyLimitCount; }
constexpr size_t count_of(AllocatorEventKind) { return static_cast<size_t>(AllocatorEventKind::kSegmentUnmap) + 1; }
constexpr size_t count_of(AllocatorBlockState) { return static_cast<size_t>(AllocatorBlockState::kAllocated) + 1; }

template <auto Member, bool Optional>
struct Column {
  static constexpr bool kOptional = Optional;
  std::string_view name;
  std::string_view meaning;
  ColumnRole role = ColumnRole::kPlain;

  template <typename Table>
  static const auto& of(const Table& table) {
    return table.*Member;
  }
};

// Each row has a value.
template <auto Member>
using Full = Column<Member, false>;
// kNoRow, kNoNumber, an empty text, and for small numbers anything negative say that the trace has no value.
template <auto Member>
using Maybe = Column<Member, true>;

template <auto Member, const auto& Columns>
struct ModelTable {
  static constexpr const auto& kColumns = Columns;
  std::string_view name;
  std::string_view meaning;

  static const auto& of(const Model& model) { return model.*Member; }
};

template <typename... Columns>
void each_column(const std::tuple<Columns...>& columns, const auto& visit) {
  std::apply([&](const auto&... column) { (visit(column), ...); }, columns);
}

inline constexpr std::tuple kLaneColumns{
    Full<&Lanes::kind>{"kind", "thread, stream, async or other"},
    Maybe<&Lanes::pid>{"pid", "process id; of a stream: the device index"},
    Maybe<&Lanes::tid>{"tid", "thread id; of a stream: the stream id"},
    Maybe<&Lanes::process_name>{"process_name", "name of the process"},
    Maybe<&Lanes::process_labels>{"process_labels", "CPU, GPU 0, ..."},
    Maybe<&Lanes::name>{"name", "thread or stream name"},
    Maybe<&Lanes::process_sort_index>{"process_sort_index", "order among processes"},
    Maybe<&Lanes::sort_index>{"sort_index", "order among the lanes of its process"},
    Full<&Lanes::host_begin>{"host_begin", "its first row of host_slices", ColumnRole::kLaneBound},
    Full<&Lanes::host_end>{"host_end", "one after its last row of host_slices", ColumnRole::kLaneBound},
    Full<&Lanes::device_begin>{"device_begin", "its first row of device_slices", ColumnRole::kLaneBound},
    Full<&Lanes::device_end>{"device_end", "one after its last row of device_slices", ColumnRole::kLaneBound},
};

inline constexpr std::tuple kHostSliceColumns{
    Full<&HostSlices::lane>{"lane", "lanes.id", ColumnRole::kLane},
    Full<&HostSlices::start_ns>{"start_ns", "since the start of the trace", ColumnRole::kStart},
    Full<&HostSlices::duration_ns>{"duration_ns", "how long it was open"},
    Full<&HostSlices::name>{"name", "aten::mm, ProfilerStep#3, cudaLaunchKernel"},
    Maybe<&HostSlices::category>{"category", "as in the trace: cpu_op, cuda_runtime"},
    Full<&HostSlices::kind>{"kind", "op, annotation, python, runtime, driver, overhead, span or other"},
    Maybe<&HostSlices::parent>{"parent", "host_slices.id of the innermost slice around it"},
    Full<&HostSlices::depth>{"depth", "0 = outermost"},
    Maybe<&HostSlices::detail>{"detail", "op_details.id of ops and annotations, call_details.id of calls"},
};

inline constexpr std::tuple kOpDetailColumns{
    Full<&OpDetails::slice>{"slice", "host_slices.id"},
    Maybe<&OpDetails::external_id>{"external_id", "joins ops, calls and device work"},
    Maybe<&OpDetails::sequence_number>{"sequence_number", "joins forward and backward ops"},
    Maybe<&OpDetails::forward_thread>{"forward_thread", "torch's id of the thread of the forward op"},
    Maybe<&OpDetails::input_dims>{"input_dims", "JSON: [[16, 512], []]"},
    Maybe<&OpDetails::input_types>{"input_types", "JSON: [\"float\", \"Scalar\"]"},
    Maybe<&OpDetails::input_strides>{"input_strides", "JSON"},
    Maybe<&OpDetails::concrete_inputs>{"concrete_inputs", "JSON"},
    Maybe<&OpDetails::stack>{"stack", "Python stack, innermost first, joined by ;"},
    Maybe<&OpDetails::module_hierarchy>{"module_hierarchy", "TorchScript module path"},
    Maybe<&OpDetails::overload>{"overload", "of an op: Tensor for aten::add.Tensor"},
    Maybe<&OpDetails::flops>{"flops", "floating point operations, when the trace gives them"},
    Maybe<&OpDetails::forward>{"forward", "host_slices.id of the forward op of a backward op"},
    Maybe<&OpDetails::comm>{"comm", "comm_details.id"},
};

inline constexpr std::tuple kCallDetailColumns{
    Full<&CallDetails::slice>{"slice", "host_slices.id"},
    Maybe<&CallDetails::correlation>{"correlation", "joins the call and its device work"},
    Maybe<&CallDetails::external_id>{"external_id", "joins ops, calls and device work"},
    Maybe<&CallDetails::op>{"op", "host_slices.id of the op that made the call"},
};

inline constexpr std::tuple kDeviceSliceColumns{
    Full<&DeviceSlices::lane>{"lane", "lanes.id", ColumnRole::kLane},
    Full<&DeviceSlices::start_ns>{"start_ns", "since the start of the trace", ColumnRole::kStart},
    Full<&DeviceSlices::duration_ns>{"duration_ns", "how long it ran"},
    Full<&DeviceSlices::name>{"name", "kernel name, Memcpy HtoD (Pinned -> Device)"},
    Maybe<&DeviceSlices::category>{"category", "as in the trace: kernel, gpu_memcpy"},
    Full<&DeviceSlices::kind>{"kind", "kernel, copy, set, sync, event, collective, annotation or other"},
    Maybe<&DeviceSlices::correlation>{"correlation", "joins the call and its device work"},
    Maybe<&DeviceSlices::external_id>{"external_id", "joins ops, calls and device work"},
    Maybe<&DeviceSlices::launch>{"launch", "host_slices.id of the call that queued it"},
    Maybe<&DeviceSlices::op>{"op", "host_slices.id of the op it belongs to"},
    Maybe<&DeviceSlices::detail>{"detail", "kernel_details.id, copy_details.id or sync_details.id"},
    Maybe<&DeviceSlices::comm>{"comm", "comm_details.id"},
    Maybe<&DeviceSlices::device>{"device", "index of the GPU"},
    Maybe<&DeviceSlices::stream>{"stream", "stream id"},
    Maybe<&DeviceSlices::window>{"window", "began before, ends after (or both) the recording; NULL = inside"},
};

inline constexpr std::tuple kKernelDetailColumns{
    Full<&KernelDetails::slice>{"slice", "device_slices.id"},
    Maybe<&KernelDetails::grid_x>{"grid_x", "blocks"},
    Maybe<&KernelDetails::grid_y>{"grid_y", "blocks"},
    Maybe<&KernelDetails::grid_z>{"grid_z", "blocks"},
    Maybe<&KernelDetails::block_x>{"block_x", "threads"},
    Maybe<&KernelDetails::block_y>{"block_y", "threads"},
    Maybe<&KernelDetails::block_z>{"block_z", "threads"},
    Maybe<&KernelDetails::registers>{"registers", "per thread"},
    Maybe<&KernelDetails::shared_memory_bytes>{"shared_memory_bytes", "static + dynamic, per block"},
    Maybe<&KernelDetails::blocks_per_sm>{"blocks_per_sm", "grid size / multiprocessors"},
    Maybe<&KernelDetails::warps_per_sm>{"warps_per_sm", "warps / multiprocessors"},
    Maybe<&KernelDetails::occupancy_percent>{"occupancy_percent", "estimated, achieved"},
    Maybe<&KernelDetails::occupancy_limit>{"occupancy_limit",
                                           "none, warps, blocks, registers, shared memory or grid: what bounds it"},
    Maybe<&KernelDetails::context>{"context", "CUDA context"},
    Maybe<&KernelDetails::graph_id>{"graph_id", "CUDA graph"},
    Maybe<&KernelDetails::graph_node_id>{"graph_node_id", "node of the CUDA graph"},
};

inline constexpr std::tuple kCopyDetailColumns{
    Full<&CopyDetails::slice>{"slice", "device_slices.id"},
    Maybe<&CopyDetails::bytes>{"bytes", "copied or set"},
    Maybe<&CopyDetails::bandwidth_gb_s>{"bandwidth_gb_s", "as in the trace"},
    Maybe<&CopyDetails::context>{"context", "CUDA context"},
    Maybe<&CopyDetails::graph_id>{"graph_id", "CUDA graph"},
    Maybe<&CopyDetails::graph_node_id>{"graph_node_id", "node of the CUDA graph"},
    Maybe<&CopyDetails::source_device>{"source_device", "of a copy between GPUs"},
    Maybe<&CopyDetails::target_device>{"target_device", "of a copy between GPUs"},
};

inline constexpr std::tuple kSyncDetailColumns{
    Full<&SyncDetails::slice>{"slice", "device_slices.id"},
    Maybe<&SyncDetails::wait_on_stream>{"wait_on_stream", "stream that is waited for"},
    Maybe<&SyncDetails::wait_on_correlation>{"wait_on_correlation", "correlation of the event record waited for"},
    Maybe<&SyncDetails::wait_on_event>{"wait_on_event", "event that is waited for"},
    Maybe<&SyncDetails::context>{"context", "CUDA context"},
};

inline constexpr std::tuple kCommDetailColumns{
    Maybe<&CommDetails::collective>{"collective", "allreduce, ..."},
    Maybe<&CommDetails::dtype>{"dtype", "element type"},
    Maybe<&CommDetails::in_elements>{"in_elements", "elements sent"},
    Maybe<&CommDetails::out_elements>{"out_elements", "elements received"},
    Maybe<&CommDetails::group_size>{"group_size", "ranks in the group"},
    Maybe<&CommDetails::group_name>{"group_name", "process group"},
    Maybe<&CommDetails::group_description>{"group_description", "what the group is for"},
    Maybe<&CommDetails::group_ranks>{"group_ranks", "JSON: [0, 1]"},
    Maybe<&CommDetails::in_split_sizes>{"in_split_sizes", "JSON: elements to each rank; [] = as many to all"},
    Maybe<&CommDetails::out_split_sizes>{"out_split_sizes", "JSON: elements from each rank; [] = as many from all"},
    Maybe<&CommDetails::global_rank_start>{"global_rank_start", "global rank of the group's first"},
    Maybe<&CommDetails::global_rank_stride>{"global_rank_stride", "from one global rank of the group to the next"},
    Maybe<&CommDetails::rank>{"rank", "own rank"},
    Maybe<&CommDetails::source_rank>{"source_rank", "of a receive"},
    Maybe<&CommDetails::destination_rank>{"destination_rank", "of a send"},
    Maybe<&CommDetails::sequence>{"sequence", "number of the collective in its group"},
};

inline constexpr std::tuple kMemoryEventColumns{
    Full<&MemoryEvents::time_ns>{"time_ns", "since the start of the trace", ColumnRole::kTime},
    Full<&MemoryEvents::lane>{"lane", "lanes.id"},
    Full<&MemoryEvents::kind>{"kind", "alloc, free or out_of_memory"},
    Full<&MemoryEvents::device_type>{"device_type", "c10::DeviceType: 0 CPU, 1 CUDA"},
    Full<&MemoryEvents::device>{"device", "index of the device; -1 for the CPU"},
    Full<&MemoryEvents::address>{"address", "of the block"},
    Maybe<&MemoryEvents::bytes>{"bytes", "negative = freed"},
    Maybe<&MemoryEvents::total_allocated_bytes>{"total_allocated_bytes", "on this device after the event"},
    Maybe<&MemoryEvents::total_reserved_bytes>{"total_reserved_bytes", "by the caching allocator"},
    Maybe<&MemoryEvents::stream>{"stream", "handle of the stream; 0 = the default one"},
    Maybe<&MemoryEvents::pool>{"pool", "common, or of whom: graph N, pool N"},
};

inline constexpr std::tuple kAllocatorEventColumns{
    Full<&AllocatorEvents::time_ns>{"time_ns", "since the start of the trace", ColumnRole::kTime},
    Full<&AllocatorEvents::lane>{"lane", "lanes.id"},
    Full<&AllocatorEvents::kind>{"kind", "free_completed, segment_alloc, segment_free, segment_map or segment_unmap"},
    Full<&AllocatorEvents::device_type>{"device_type", "c10::DeviceType: 1 CUDA"},
    Full<&AllocatorEvents::device>{"device", "index of the device"},
    Full<&AllocatorEvents::address>{"address", "where it begins"},
    Full<&AllocatorEvents::bytes>{"bytes", "of the segment or block"},
    Maybe<&AllocatorEvents::stream>{"stream", "handle of the stream; 0 = the default one"},
    Maybe<&AllocatorEvents::pool>{"pool", "common, or of whom: graph N, pool N"},
};

inline constexpr std::tuple kAllocatorSegmentColumns{
    Full<&AllocatorSegments::time_ns>{"time_ns", "when; may lie before the trace", ColumnRole::kTime},
    Full<&AllocatorSegments::device_type>{"device_type", "c10::DeviceType: 1 CUDA"},
    Full<&AllocatorSegments::device>{"device", "index of the device"},
    Full<&AllocatorSegments::address>{"address", "where it begins"},
    Full<&AllocatorSegments::bytes>{"bytes", "of the segment; 0 = the device held none"},
    Maybe<&AllocatorSegments::stream>{"stream", "handle of the stream; 0 = the default one"},
    Maybe<&AllocatorSegments::pool>{"pool", "common, or of whom: graph N, pool N"},
    Full<&AllocatorSegments::is_expandable>{"is_expandable", "1 = mapped piece by piece"},
};

inline constexpr std::tuple kAllocatorBlockColumns{
    Full<&AllocatorBlocks::time_ns>{"time_ns", "when; may lie before the trace", ColumnRole::kTime},
    Full<&AllocatorBlocks::device_type>{"device_type", "c10::DeviceType: 1 CUDA"},
    Full<&AllocatorBlocks::device>{"device", "index of the device"},
    Full<&AllocatorBlocks::address>{"address", "where it begins"},
    Full<&AllocatorBlocks::bytes>{"bytes", "of the block"},
    Full<&AllocatorBlocks::state>{"state", "free, waiting (freed, but streams may use it) or allocated"},
};

inline constexpr std::tuple kInstantColumns{
    Full<&Instants::time_ns>{"time_ns", "since the start of the trace", ColumnRole::kTime},
    Full<&Instants::lane>{"lane", "lanes.id"},
    Full<&Instants::name>{"name", "of the mark"},
    Maybe<&Instants::category>{"category", "as in the trace"},
    Maybe<&Instants::scope>{"scope", "thread, process or global"},
};

inline constexpr std::tuple kCounterTrackColumns{
    Maybe<&CounterTracks::pid>{"pid", "process id"},
    Full<&CounterTracks::name>{"name", "of the counter"},
    Maybe<&CounterTracks::series>{"series", "one counter may have several"},
};

inline constexpr std::tuple kCounterSampleColumns{
    Full<&CounterSamples::time_ns>{"time_ns", "since the start of the trace", ColumnRole::kTime},
    Full<&CounterSamples::track>{"track", "counter_tracks.id"},
    Maybe<&CounterSamples::value>{"value", "of the counter from this time on"},
};

inline constexpr std::tuple kFlowColumns{
    Full<&Flows::name>{"name", "of the arrow"},      Maybe<&Flows::category>{"category", "as in the trace"},
    Maybe<&Flows::id>{"flow_id", "as in the trace"}, Maybe<&Flows::from>{"from", "where it begins"},
    Maybe<&Flows::to>{"to", "where it ends"},
};

inline constexpr std::tuple kStepColumns{
    Full<&Steps::number>{"number", "N"},
    Maybe<&Steps::slice>{"slice", "host_slices.id"},
    Full<&Steps::start_ns>{"start_ns", "since the start of the trace", ColumnRole::kTime},
    Full<&Steps::duration_ns>{"duration_ns", "of the step"},
};

inline constexpr std::tuple kModelTables{
    ModelTable<&Model::lanes, kLaneColumns>{"lanes", "threads and GPU streams"},
    ModelTable<&Model::host_slices, kHostSliceColumns>{"host_slices",
                                                       "ops, annotations, Python functions, runtime and driver calls"},
    ModelTable<&Model::op_details, kOpDetailColumns>{"op_details", "what only ops and annotations have"},
    ModelTable<&Model::call_details, kCallDetailColumns>{"call_details", "what only runtime and driver calls have"},
    ModelTable<&Model::device_slices, kDeviceSliceColumns>{
        "device_slices", "kernels, copies, sets, synchronisations, device-side annotations"},
    ModelTable<&Model::kernel_details, kKernelDetailColumns>{"kernel_details", "what only kernels have"},
    ModelTable<&Model::copy_details, kCopyDetailColumns>{"copy_details", "copies and sets"},
    ModelTable<&Model::sync_details, kSyncDetailColumns>{"sync_details", "device-side synchronisation records"},
    ModelTable<&Model::comm_details, kCommDetailColumns>{"comm_details", "collectives"},
    ModelTable<&Model::memory_events, kMemoryEventColumns>{"memory_events", "allocations and frees"},
    ModelTable<&Model::allocator_events, kAllocatorEventColumns>{
        "allocator_events", "what the caching allocator did below allocations and frees"},
    ModelTable<&Model::allocator_segments, kAllocatorSegmentColumns>{
        "allocator_segments",
        "segments that the caching allocator held when recording began, and again after each pause"},
    ModelTable<&Model::allocator_blocks, kAllocatorBlockColumns>{"allocator_blocks", "the pieces of these segments"},
    ModelTable<&Model::instants, kInstantColumns>{"instants", "marks without a duration"},
    ModelTable<&Model::counter_tracks, kCounterTrackColumns>{"counter_tracks",
                                                             "counters: power, clocks, queue lengths"},
    ModelTable<&Model::counter_samples, kCounterSampleColumns>{"counter_samples", "the values of counters over time"},
    ModelTable<&Model::flows, kFlowColumns>{"flows",
                                            "arrows other than op to launch to device work and forward to backward"},
    ModelTable<&Model::steps, kStepColumns>{"steps", "iterations: ProfilerStep#N"},
};

void each_model_table(const auto& visit) {
  std::apply([&](const auto&... table) { (visit(table), ...); }, kModelTables);
}

}  // namespace firelane
