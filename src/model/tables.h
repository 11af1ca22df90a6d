// The tables of the model, each declared once: model/table.h says what follows from a list.
//
// A new column is one line in a list of one of the files included here; a new table is a list, its two structs, and a
// line in FL_TABLES below. Times are int64 ns since the start of the trace. The meanings are those of `.schema` and
// docs/sql.md.
#pragma once

#include "model/device_tables.h"
#include "model/event_tables.h"
#include "model/host_tables.h"
#include "model/memory_tables.h"
#include "model/table.h"

namespace firelane {

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
