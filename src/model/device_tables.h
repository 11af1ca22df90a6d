// The tables of what devices did: slices, and the details of kernels, copies, waits and collectives (model/tables.h).
#pragma once

#include "model/table.h"

namespace firelane {

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

}  // namespace firelane
