// The tables of lanes and of what the host did: slices, and the details of operators and calls (model/tables.h).
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

#define FL_HOST_SLICES(WIDE, READ, MADE)                                                             \
  READ(LaneId, lane, kLane, "lanes.id")                                                              \
  WIDE(int64_t, start_ns, kStart, "since the start of the trace")                                    \
  WIDE(int64_t, duration_ns, kDuration, "how long it was open")                                      \
  READ(StringId, name, kFull, "aten::mm, ProfilerStep#3, cudaLaunchKernel")                          \
  READ(StringId, category, kMaybe, "as in the trace: cpu_op, cuda_runtime")                          \
  READ(HostKind, kind, kFull, "op, annotation, python, runtime, driver, overhead, span or other")    \
  READ(ModuleCall, module, kInner, "of a Python function: how it names an nn.Module, if it is one")  \
  MADE(HostRole, role, kMaybe, "what torch opened it for: step, optimizer step, backward node, ...") \
  MADE(Row, parent, kMaybe, "host_slices.id of the innermost slice around it")                       \
  MADE(uint16_t, depth, kFull, "0 = outermost")                                                      \
  READ(DetailRow, detail, kMaybe, "op_details.id of ops and annotations, call_details.id of calls")  \
  READ(int32_t, call_line, kMaybe, "of a Python function: the line that called it, in its caller")   \
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

}  // namespace firelane
