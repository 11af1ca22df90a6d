// The tables of the model, each declared once: model/table.h says what follows from a list.
//
// A new column is one line in a list; a new table is a list, its two structs, and a line in FL_TABLES at the end. Times
// are int64 ns since the start of the trace. The meanings are those of `.schema` and docs/sql.md.
#pragma once

#include "model/table.h"

namespace firelane {

#define FL_LANES(WIDE, READ, MADE)                                          \
  MADE(LaneKind, kind, kFull, "thread, stream, async or other")             \
  MADE(TraceId, pid, kMaybe, "process id; of a stream: the device index")   \
  MADE(TraceId, tid, kMaybe, "thread id; of a stream: the stream id")       \
  MADE(StringId, process_name, kMaybe, "name of the process")               \
  MADE(StringId, process_labels, kMaybe, "CPU, GPU 0, ...")                 \
  MADE(StringId, name, kMaybe, "thread or stream name")                     \
  MADE(LaneOwner, owner, kInner, "whose work it shows")                     \
  MADE(int64_t, process_sort_index, kMaybe, "order among processes")        \
  MADE(int64_t, sort_index, kMaybe, "order among the lanes of its process") \
  MADE(Row, host_begin, kLaneBound, "its first row of host_slices")         \
  MADE(Row, host_end, kLaneBound, "one after its last row of host_slices")  \
  MADE(Row, device_begin, kLaneBound, "its first row of device_slices")     \
  MADE(Row, device_end, kLaneBound, "one after its last row of device_slices")

struct Lanes {
  FL_MADE_COLUMNS(FL_LANES)
};

#define FL_HOST_SLICES(WIDE, READ, MADE)                                                            \
  READ(LaneId, lane, kLane, "lanes.id")                                                             \
  WIDE(int64_t, start_ns, kStart, "since the start of the trace")                                   \
  WIDE(int64_t, duration_ns, kDuration, "how long it was open")                                     \
  READ(StringId, name, kFull, "aten::mm, ProfilerStep#3, cudaLaunchKernel")                         \
  READ(StringId, category, kMaybe, "as in the trace: cpu_op, cuda_runtime")                         \
  READ(HostKind, kind, kFull, "op, annotation, python, runtime, driver, overhead, span or other")   \
  READ(ModuleCall, module, kInner, "of a Python function: how it names an nn.Module, if it is one") \
  MADE(Row, parent, kMaybe, "host_slices.id of the innermost slice around it")                      \
  MADE(uint16_t, depth, kFull, "0 = outermost")                                                     \
  READ(DetailRow, detail, kMaybe, "op_details.id of ops and annotations, call_details.id of calls") \
  READ(int32_t, call_line, kMaybe, "of a Python function: the line that called it, in its caller")  \
  WIDE(uint64_t, source, kSource, "where the event lies in the source")

struct RawHostSlice {
  FL_RAW_ROW(FL_HOST_SLICES)
};
struct HostSlices {
  FL_COLUMNS(RawHostSlice, FL_HOST_SLICES)
  int64_t end_ns(Row row) const { return start_ns[row] + duration_ns[row]; }
};

// Details have one row for each slice of their kinds, in file order.
#define FL_OP_DETAILS(WIDE, READ, MADE)                                                    \
  MADE(Row, slice, kFull, "host_slices.id")                                                \
  WIDE(int64_t, external_id, kMaybe, "joins ops, calls and device work")                   \
  WIDE(int64_t, sequence_number, kMaybe, "joins forward and backward ops")                 \
  WIDE(int64_t, forward_thread, kMaybe, "torch's id of the thread of the forward op")      \
  WIDE(int64_t, call_id, kMaybe, "torch's id of the call, which joins execution traces")   \
  WIDE(int64_t, data_node, kMaybe, "id of its node in the execution trace")                \
  READ(StringId, input_dims, kMaybe, "JSON: [[16, 512], []]")                              \
  READ(StringId, input_types, kMaybe, "JSON: [\"float\", \"Scalar\"]")                     \
  READ(StringId, input_strides, kMaybe, "JSON")                                            \
  READ(StringId, concrete_inputs, kMaybe, "JSON")                                          \
  READ(StringId, tensors, kMaybe, "JSON: [[tensor, storage, device type, device, dtype]]") \
  READ(StringId, stack, kMaybe, "Python stack, innermost first, joined by ;")              \
  READ(StringId, module_hierarchy, kMaybe, "TorchScript module path")                      \
  READ(StringId, overload, kMaybe, "of an op: Tensor for aten::add.Tensor")                \
  READ(StringId, more_args, kMaybe, "JSON: keyword inputs, args of a range")               \
  READ(int32_t, is_async, kMaybe, "1: never closed, or closed by another thread")          \
  WIDE(int64_t, flops, kMaybeSize, "floating point operations, when the trace gives them") \
  MADE(Row, forward, kMaybe, "host_slices.id of the forward op of a backward op")          \
  READ(CommRow, comm, kMaybe, "comm_details.id")

struct RawOp {
  FL_RAW_ROW(FL_OP_DETAILS)
};
struct OpDetails {
  FL_COLUMNS(RawOp, FL_OP_DETAILS)
};

// Which data an op needs, of whom: from an execution trace, alone or joined to the trace of the same run. Sorted by op.
#define FL_DATA_DEPENDENCIES(WIDE, READ, MADE)                                                              \
  READ(OpRow, op, kFull, "op_details.id of the op that reads or overwrites it")                             \
  READ(DataUse, use, kFull, "read, overwrite, or unknown where the trace does not say what the op touches") \
  WIDE(int64_t, producer_node, kMaybe,                                                                      \
       "op_details.data_node of the op it has to wait for; none: from before the recording")                \
  MADE(Row, producer, kMaybe, "op_details.id of that op, where it is in the trace")                         \
  WIDE(int64_t, bytes, kMaybeSize, "of the tensor")

struct RawDataDependency {
  FL_RAW_ROW(FL_DATA_DEPENDENCIES)
};
struct DataDependencies {
  FL_COLUMNS(RawDataDependency, FL_DATA_DEPENDENCIES)
};

#define FL_CALL_DETAILS(WIDE, READ, MADE)                                  \
  MADE(Row, slice, kFull, "host_slices.id")                                \
  WIDE(int64_t, correlation, kMaybe, "joins the call and its device work") \
  WIDE(int64_t, external_id, kMaybe, "joins ops, calls and device work")   \
  MADE(Row, op, kMaybe, "host_slices.id of the op that made the call")

struct RawCall {
  FL_RAW_ROW(FL_CALL_DETAILS)
};
struct CallDetails {
  FL_COLUMNS(RawCall, FL_CALL_DETAILS)
};

#define FL_DEVICE_SLICES(WIDE, READ, MADE)                                                            \
  READ(LaneId, lane, kLane, "lanes.id")                                                               \
  WIDE(int64_t, start_ns, kStart, "since the start of the trace")                                     \
  WIDE(int64_t, duration_ns, kDuration, "how long it ran")                                            \
  READ(StringId, name, kFull, "kernel name, Memcpy HtoD (Pinned -> Device)")                          \
  READ(StringId, category, kMaybe, "as in the trace: kernel, gpu_memcpy")                             \
  READ(DeviceKind, kind, kFull, "kernel, copy, set, sync, event, collective, annotation or other")    \
  WIDE(int64_t, correlation, kMaybe, "joins the call and its device work")                            \
  WIDE(int64_t, external_id, kMaybe, "joins ops, calls and device work")                              \
  MADE(Row, launch, kMaybe, "host_slices.id of the call that queued it")                              \
  MADE(Row, op, kMaybe, "host_slices.id of the op it belongs to")                                     \
  READ(DetailRow, detail, kMaybe, "kernel_details.id, copy_details.id or sync_details.id")            \
  READ(CommRow, comm, kMaybe, "comm_details.id")                                                      \
  READ(int32_t, device, kMaybe, "index of the GPU")                                                   \
  WIDE(int64_t, stream, kMaybe, "stream id")                                                          \
  MADE(WindowMark, window, kMaybe, "began before, ends after (or both) the recording; NULL = inside") \
  WIDE(uint64_t, source, kSource, "where the event lies in the source")

struct RawDeviceSlice {
  FL_RAW_ROW(FL_DEVICE_SLICES)
};
struct DeviceSlices {
  FL_COLUMNS(RawDeviceSlice, FL_DEVICE_SLICES)
  int64_t end_ns(Row row) const { return start_ns[row] + duration_ns[row]; }
};

#define FL_KERNEL_DETAILS(WIDE, READ, MADE)                                                    \
  MADE(Row, slice, kFull, "device_slices.id")                                                  \
  READ(int32_t, grid_x, kMaybe, "blocks")                                                      \
  READ(int32_t, grid_y, kMaybe, "blocks")                                                      \
  READ(int32_t, grid_z, kMaybe, "blocks")                                                      \
  READ(int32_t, block_x, kMaybe, "threads")                                                    \
  READ(int32_t, block_y, kMaybe, "threads")                                                    \
  READ(int32_t, block_z, kMaybe, "threads")                                                    \
  READ(int32_t, registers, kMaybe, "per thread")                                               \
  WIDE(int64_t, shared_memory_bytes, kMaybeSize, "static + dynamic, per block")                \
  READ(float, blocks_per_sm, kMaybe, "grid size / multiprocessors")                            \
  READ(float, warps_per_sm, kMaybe, "warps / multiprocessors")                                 \
  READ(float, occupancy_percent, kMaybe, "estimated, achieved")                                \
  MADE(OccupancyLimit, occupancy_limit, kMaybe,                                                \
       "none, warps, blocks, registers, shared memory or grid: what limits it")                \
  WIDE(int64_t, context, kMaybe, "CUDA context")                                               \
  WIDE(int64_t, graph_id, kMaybe, "CUDA graph")                                                \
  WIDE(int64_t, graph_node_id, kMaybe, "node of the CUDA graph")                               \
  WIDE(int64_t, flops, kMaybeSize, "floating point operations, by the compiler's count (XLA)") \
  WIDE(int64_t, bytes_accessed, kMaybeSize, "of device memory, by the compiler's count (XLA)") \
  READ(StringId, op_category, kMaybe, "XLA: convolution fusion, all-reduce, ...")              \
  READ(StringId, op_name, kMaybe, "where it comes from: jit(train)/dot_general, an HLO op")    \
  READ(StringId, program, kMaybe, "compiled module: jit_train(123)")

struct RawKernel {
  FL_RAW_ROW(FL_KERNEL_DETAILS)
};
struct KernelDetails {
  FL_COLUMNS(RawKernel, FL_KERNEL_DETAILS)
};

#define FL_COPY_DETAILS(WIDE, READ, MADE)                                                     \
  MADE(Row, slice, kFull, "device_slices.id")                                                 \
  WIDE(int64_t, bytes, kMaybeSize, "copied or set")                                           \
  READ(float, bandwidth_gb_s, kMaybe, "as in the trace")                                      \
  WIDE(int64_t, context, kMaybe, "CUDA context")                                              \
  WIDE(int64_t, graph_id, kMaybe, "CUDA graph")                                               \
  WIDE(int64_t, graph_node_id, kMaybe, "node of the CUDA graph")                              \
  WIDE(int64_t, source_device, kMaybe, "of a copy between GPUs")                              \
  WIDE(int64_t, target_device, kMaybe, "of a copy between GPUs")                              \
  READ(CopyDirection, direction, kMaybe, "HtoD, DtoH, DtoD, ...")                             \
  READ(MemoryKind, source_memory, kMaybe, "Pageable, Pinned, Device, ...: what a copy reads") \
  READ(MemoryKind, target_memory, kMaybe, "Pageable, Pinned, Device, ...: what a copy or memset writes")

struct RawCopy {
  FL_RAW_ROW(FL_COPY_DETAILS)
};
struct CopyDetails {
  FL_COLUMNS(RawCopy, FL_COPY_DETAILS)
};

#define FL_SYNC_DETAILS(WIDE, READ, MADE)                                                  \
  MADE(Row, slice, kFull, "device_slices.id")                                              \
  WIDE(int64_t, wait_on_stream, kMaybe, "stream that is waited for")                       \
  WIDE(int64_t, wait_on_correlation, kMaybe, "correlation of the event record waited for") \
  WIDE(int64_t, wait_on_event, kMaybe, "event that is waited for")                         \
  WIDE(int64_t, context, kMaybe, "CUDA context")

struct RawSync {
  FL_RAW_ROW(FL_SYNC_DETAILS)
};
struct SyncDetails {
  FL_COLUMNS(RawSync, FL_SYNC_DETAILS)
};

#define FL_COMM_DETAILS(WIDE, READ, MADE)                                                         \
  READ(StringId, collective, kMaybe, "allreduce, ...")                                            \
  READ(StringId, dtype, kMaybe, "element type")                                                   \
  WIDE(int64_t, in_elements, kMaybeSize, "elements sent")                                         \
  WIDE(int64_t, out_elements, kMaybeSize, "elements received")                                    \
  WIDE(int64_t, group_size, kMaybeSize, "ranks in the group")                                     \
  READ(StringId, group_name, kMaybe, "process group")                                             \
  READ(StringId, group_description, kMaybe, "what the group is for")                              \
  READ(StringId, group_ranks, kMaybe, "JSON: [0, 1]")                                             \
  READ(StringId, in_split_sizes, kMaybe, "JSON: elements to each rank; [] = as many to all")      \
  READ(StringId, out_split_sizes, kMaybe, "JSON: elements from each rank; [] = as many from all") \
  WIDE(int64_t, global_rank_start, kMaybe, "global rank of the group's first")                    \
  WIDE(int64_t, global_rank_stride, kMaybe, "from one global rank of the group to the next")      \
  WIDE(int64_t, rank, kMaybe, "own rank")                                                         \
  WIDE(int64_t, source_rank, kMaybe, "of a receive")                                              \
  WIDE(int64_t, destination_rank, kMaybe, "of a send")                                            \
  WIDE(int64_t, sequence, kMaybe, "number of the collective in its group")                        \
  READ(CommBackend, backend, kMaybe, "nccl, gloo, mpi, ucc, xccl or hccl")                        \
  READ(CommState, state, kMaybe, "in a flight recorder's dump: scheduled, started or completed")

struct RawComm {
  FL_RAW_ROW(FL_COMM_DETAILS)
};
struct CommDetails {
  FL_COLUMNS(RawComm, FL_COMM_DETAILS)
};

#define FL_MEMORY_EVENTS(WIDE, READ, MADE)                                           \
  WIDE(int64_t, time_ns, kTime, "since the start of the trace")                      \
  READ(LaneId, lane, kFull, "lanes.id")                                              \
  READ(MemoryEventKind, kind, kFull, "alloc, free or out_of_memory")                 \
  READ(int32_t, device_type, kFull, "c10::DeviceType: 0 CPU, 1 CUDA")                \
  READ(int32_t, device, kFull, "index of the device; -1 for the CPU")                \
  WIDE(uint64_t, address, kFull, "of the block")                                     \
  WIDE(int64_t, bytes, kSize, "negative = freed")                                    \
  WIDE(int64_t, total_allocated_bytes, kMaybeSize, "on this device after the event") \
  WIDE(int64_t, total_reserved_bytes, kMaybeSize, "by the caching allocator")        \
  WIDE(int64_t, stream, kMaybe, "handle of the stream; 0 = the default one")         \
  READ(StringId, pool, kMaybe, "common, or its owner: graph N, pool N")              \
  READ(StringId, op, kMaybe, "operator that asked, where the trace has no ops")      \
  READ(StringId, stack, kMaybe, "call stack, innermost first, joined by ;")          \
  WIDE(uint64_t, source, kSource, "where the event lies in the source")

struct RawMemory {
  FL_RAW_ROW(FL_MEMORY_EVENTS)
};
struct MemoryEvents {
  FL_COLUMNS(RawMemory, FL_MEMORY_EVENTS)
};

// What a caching allocator did below allocations and frees: memory from and back to the driver, and when a freed block
// could be used again.
#define FL_ALLOCATOR_EVENTS(WIDE, READ, MADE)                                                                        \
  WIDE(int64_t, time_ns, kTime, "since the start of the trace")                                                      \
  READ(LaneId, lane, kFull, "lanes.id")                                                                              \
  READ(AllocatorEventKind, kind, kFull, "free_completed, segment_alloc, segment_free, segment_map or segment_unmap") \
  READ(int32_t, device_type, kFull, "c10::DeviceType: 1 CUDA")                                                       \
  READ(int32_t, device, kFull, "index of the device")                                                                \
  WIDE(uint64_t, address, kFull, "where it begins")                                                                  \
  WIDE(int64_t, bytes, kSize, "of the segment or block")                                                             \
  WIDE(int64_t, stream, kMaybe, "handle of the stream; 0 = the default one")                                         \
  READ(StringId, pool, kMaybe, "common, or its owner: graph N, pool N")

struct RawAllocatorEvent {
  FL_RAW_ROW(FL_ALLOCATOR_EVENTS)
};
struct AllocatorEvents {
  FL_COLUMNS(RawAllocatorEvent, FL_ALLOCATOR_EVENTS)
};

// What a caching allocator held when its recording began, and again after each pause: all rows of a device with the
// same time are one state, which counts instead of what was before. A device that held nothing has one segment of 0
// bytes.
#define FL_ALLOCATOR_SEGMENTS(WIDE, READ, MADE)                              \
  WIDE(int64_t, time_ns, kTimeAside, "when; may lie before the trace")       \
  READ(int32_t, device_type, kFull, "c10::DeviceType: 1 CUDA")               \
  READ(int32_t, device, kFull, "index of the device")                        \
  WIDE(uint64_t, address, kFull, "where it begins")                          \
  WIDE(int64_t, bytes, kSize, "of the segment; 0 = the device held none")    \
  WIDE(int64_t, stream, kMaybe, "handle of the stream; 0 = the default one") \
  READ(StringId, pool, kMaybe, "common, or its owner: graph N, pool N")      \
  READ(uint16_t, is_expandable, kFull, "1 = mapped piece by piece")

struct RawAllocatorSegment {
  FL_RAW_ROW(FL_ALLOCATOR_SEGMENTS)
};
struct AllocatorSegments {
  FL_COLUMNS(RawAllocatorSegment, FL_ALLOCATOR_SEGMENTS)
};

#define FL_ALLOCATOR_BLOCKS(WIDE, READ, MADE)                          \
  WIDE(int64_t, time_ns, kTimeAside, "when; may lie before the trace") \
  READ(int32_t, device_type, kFull, "c10::DeviceType: 1 CUDA")         \
  READ(int32_t, device, kFull, "index of the device")                  \
  WIDE(uint64_t, address, kFull, "where it begins")                    \
  WIDE(int64_t, bytes, kSize, "of the block")                          \
  READ(AllocatorBlockState, state, kFull, "free, waiting (freed, but streams may use it) or allocated")

struct RawAllocatorBlock {
  FL_RAW_ROW(FL_ALLOCATOR_BLOCKS)
};
struct AllocatorBlocks {
  FL_COLUMNS(RawAllocatorBlock, FL_ALLOCATOR_BLOCKS)
};

#define FL_INSTANTS(WIDE, READ, MADE)                           \
  WIDE(int64_t, time_ns, kTime, "since the start of the trace") \
  READ(LaneId, lane, kFull, "lanes.id")                         \
  READ(StringId, name, kFull, "of the mark")                    \
  READ(StringId, category, kMaybe, "as in the trace")           \
  READ(InstantScope, scope, kFull, "thread, process or global") \
  WIDE(uint64_t, source, kSource, "where the event lies in the source")

struct RawInstant {
  FL_RAW_ROW(FL_INSTANTS)
};
struct Instants {
  FL_COLUMNS(RawInstant, FL_INSTANTS)
};

// Where threads were, looked at now and then while the recorder ran (firelane record --sample).
#define FL_STACK_SAMPLES(WIDE, READ, MADE)                                                            \
  WIDE(int64_t, time_ns, kTimeAside, "since the start of the trace, before which it may lie")         \
  WIDE(int64_t, weight_ns, kMaybeSize, "the time that it stands for: time since the previous sample") \
  READ(LaneId, lane, kFull, "lanes.id of the thread")                                                 \
  READ(StringId, stack, kMaybe, "Python stack, innermost first, joined by ;")                         \
  READ(int32_t, on_cpu, kMaybe, "1: the thread was on a core, 0: it waited; none: not known")         \
  READ(int32_t, has_gil, kMaybe, "1: it held the GIL")

struct RawStackSample {
  FL_RAW_ROW(FL_STACK_SAMPLES)
};
struct StackSamples {
  FL_COLUMNS(RawStackSample, FL_STACK_SAMPLES)
};

// A reader gives samples with their track; assemble() tells the tracks apart.
#define FL_COUNTERS(WIDE, READ, MADE) \
  WIDE(int64_t, time_ns, kTime, "")   \
  WIDE(double, value, kMaybe, "")     \
  WIDE(TraceId, pid, kMaybe, "")      \
  READ(StringId, name, kFull, "")     \
  READ(StringId, series, kMaybe, "the arg's key; none where there is one without a name")

struct RawCounter {
  FL_RAW_ROW(FL_COUNTERS)
};

#define FL_COUNTER_TRACKS(WIDE, READ, MADE)     \
  MADE(TraceId, pid, kMaybe, "process id")      \
  MADE(StringId, name, kFull, "of the counter") \
  MADE(StringId, series, kMaybe, "one counter may have several")

struct CounterTracks {
  FL_MADE_COLUMNS(FL_COUNTER_TRACKS)
};

#define FL_COUNTER_SAMPLES(WIDE, READ, MADE)                    \
  MADE(int64_t, time_ns, kTime, "since the start of the trace") \
  MADE(Row, track, kFull, "counter_tracks.id")                  \
  MADE(double, value, kMaybe, "of the counter from this time on")

struct CounterSamples {
  FL_MADE_COLUMNS(FL_COUNTER_SAMPLES)
};

enum class FlowPhase : uint8_t { kStart, kStep, kEnd };

// One end of an arrow, as readers give it; two of the same (category, name, id) make a flow.
#define FL_FLOW_ENDS(WIDE, READ, MADE)   \
  WIDE(int64_t, time_ns, kTimeAside, "") \
  WIDE(int64_t, id, kFull, "")           \
  READ(StringId, name, kFull, "")        \
  READ(StringId, category, kMaybe, "")   \
  READ(LaneId, lane, kFull, "")          \
  READ(FlowPhase, phase, kFull, "")      \
  READ(bool, bind_enclosing, kFull, "\"bp\": \"e\"")

struct RawFlow {
  FL_RAW_ROW(FL_FLOW_ENDS)
};

// Arrows of the trace that are not op -> launch -> device work (device_slices.launch and .op) or forward -> backward
// (op_details.forward).
#define FL_FLOWS(WIDE, READ, MADE)                    \
  MADE(StringId, name, kFull, "of the arrow")         \
  MADE(StringId, category, kMaybe, "as in the trace") \
  MADE(int64_t, flow_id, kMaybe, "as in the trace")   \
  MADE(SliceRef, from, kMaybe, "where it begins")     \
  MADE(SliceRef, to, kMaybe, "where it ends")

struct Flows {
  FL_MADE_COLUMNS(FL_FLOWS)
};

// A begin or end that finds its partner only when all parts are there (B/E on a lane, b/e/n by id).
#define FL_EDGES(WIDE, READ, MADE)                                                     \
  WIDE(int64_t, time_ns, kTimeAside, "")                                               \
  WIDE(uint64_t, source, kSource, "")                                                  \
  READ(StringId, name, kFull, "")                                                      \
  READ(StringId, category, kMaybe, "")                                                 \
  READ(StringId, id, kMaybe, "the text of scope and id of async events; none for B/E") \
  READ(LaneId, lane, kFull, "")                                                        \
  READ(char, phase, kFull, "B E b e n")

struct RawEdge {
  FL_RAW_ROW(FL_EDGES)
};

// Names of processes and threads: ph M.
enum class LaneNameKind : uint8_t { kProcessName, kProcessLabels, kProcessSortIndex, kThreadName, kThreadSortIndex };

#define FL_LANE_NAMES(WIDE, READ, MADE)            \
  WIDE(int64_t, number, kMaybe, "of a sort index") \
  READ(LaneId, lane, kFull, "")                    \
  READ(LaneNameKind, what, kFull, "")              \
  READ(StringId, text, kMaybe, "of a name")

struct RawLaneName {
  FL_RAW_ROW(FL_LANE_NAMES)
};

#define FL_STEPS(WIDE, READ, MADE)                               \
  MADE(int64_t, number, kFull, "N")                              \
  MADE(Row, slice, kMaybe, "host_slices.id")                     \
  MADE(int64_t, start_ns, kTime, "since the start of the trace") \
  MADE(int64_t, duration_ns, kFull, "of the step")

struct Steps {
  FL_MADE_COLUMNS(FL_STEPS)
};

// Steps as a recorder of ours timed them, those it did not record included. Sorted by start. Empty for other formats.
#define FL_TIMED_STEPS(WIDE, READ, MADE)                                          \
  WIDE(int64_t, number, kFull, "N")                                               \
  READ(StepDisturbance, disturbance, kFull, "none, warmup, recorded or light")    \
  WIDE(int64_t, start_ns, kTimeAside, "may lie before the trace")                 \
  WIDE(int64_t, duration_ns, kDuration, "of the step")                            \
  WIDE(int64_t, device_ns, kMaybe, "between its ends, by the device's own clock") \
  WIDE(int64_t, ran_ns, kMaybe, "its thread was on a core")                       \
  WIDE(int64_t, waited_ns, kMaybe, "its thread was ready to run and had no core")

struct RawTimedStep {
  FL_RAW_ROW(FL_TIMED_STEPS)
};
struct TimedSteps {
  FL_COLUMNS(RawTimedStep, FL_TIMED_STEPS)
};

// Every table: SHOWN in SQL, CSV, Arrow and `firelane dump`, or HIDDEN.
#define FL_TABLES(SHOWN, HIDDEN)                                                                                      \
  SHOWN(Lanes, lanes, "threads and GPU streams")                                                                      \
  SHOWN(                                                                                                              \
      HostSlices, host_slices,                                                                                        \
      "ops, annotations, Python functions, runtime and driver calls: everything with a start and an end on the host") \
  SHOWN(OpDetails, op_details, "what only ops and annotations have: shapes, types, stacks, sequence numbers")         \
  SHOWN(DataDependencies, data_dependencies,                                                                          \
        "which op has to wait for the data of which other: from execution traces")                                    \
  SHOWN(CallDetails, call_details,                                                                                    \
        "what only runtime and driver calls have: correlation and the op that made the call")                         \
  SHOWN(DeviceSlices, device_slices, "kernels, copies, memsets, synchronizations, device-side annotations")           \
  SHOWN(KernelDetails, kernel_details,                                                                                \
        "what only kernels have: grid, block, registers, shared memory, occupancy, CUDA graph")                       \
  SHOWN(CopyDetails, copy_details, "what only copies and memsets have: bytes, bandwidth, direction, kinds of memory") \
  SHOWN(SyncDetails, sync_details, "what a device-side synchronization waits for")                                    \
  SHOWN(CommDetails, comm_details, "collectives: what NCCL, or another backend, was asked to do")                     \
  SHOWN(MemoryEvents, memory_events, "allocations and frees")                                                         \
  SHOWN(AllocatorEvents, allocator_events,                                                                            \
        "what the CUDA caching allocator did below allocations and frees: segments, completed frees")                 \
  SHOWN(AllocatorSegments, allocator_segments,                                                                        \
        "segments that the caching allocator held when recording began, and again after each pause")                  \
  SHOWN(AllocatorBlocks, allocator_blocks, "the pieces of these segments: allocated, waiting or free")                \
  SHOWN(Instants, instants, "events without a duration")                                                              \
  SHOWN(StackSamples, stack_samples, "where threads were: sampled Python stacks")                                     \
  SHOWN(CounterTracks, counter_tracks, "counters: power, clocks, queue lengths")                                      \
  SHOWN(CounterSamples, counter_samples, "the values of counters over time")                                          \
  SHOWN(Flows, flows, "arrows other than op to launch to device work and forward to backward")                        \
  SHOWN(Steps, steps, "iterations (ProfilerStep#N)")                                                                  \
  HIDDEN(TimedSteps, timed_steps, "steps as the recorder timed them")

// What readers give, in each part: ROWS that become those of the table of the same name, in file order or, where they
// have a time, sorted by it; and OTHER rows, which assemble() sorts by lane, pairs or tells apart.
#define FL_RAW_TABLES(ROWS, OTHER)              \
  OTHER(RawHostSlice, host_slices)              \
  ROWS(RawOp, op_details)                       \
  OTHER(RawPlainOp, plain_ops)                  \
  ROWS(RawDataDependency, data_dependencies)    \
  ROWS(RawCall, call_details)                   \
  OTHER(RawDeviceSlice, device_slices)          \
  OTHER(RawPlainWork, plain_work)               \
  OTHER(RawWorkLook, work_looks)                \
  ROWS(RawKernel, kernel_details)               \
  ROWS(RawCopy, copy_details)                   \
  ROWS(RawSync, sync_details)                   \
  ROWS(RawComm, comm_details)                   \
  ROWS(RawMemory, memory_events)                \
  ROWS(RawAllocatorEvent, allocator_events)     \
  ROWS(RawAllocatorSegment, allocator_segments) \
  ROWS(RawAllocatorBlock, allocator_blocks)     \
  ROWS(RawInstant, instants)                    \
  ROWS(RawStackSample, stack_samples)           \
  ROWS(RawTimedStep, timed_steps)               \
  OTHER(RawCounter, counters)                   \
  OTHER(RawFlow, flow_ends)                     \
  OTHER(RawEdge, edges)                         \
  OTHER(RawLaneName, lane_names)

// The tables that SQL, CSV, Arrow and `firelane dump` show, in their order.
std::span<const TableInfo> model_tables();

}  // namespace firelane
