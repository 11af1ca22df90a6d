// What the cells of a table hold: rows, lanes, ids as traces write them, and kinds with their words.
//
// A kind is an enumeration of at most 256 values with a word for each: the words of docs, JSON, SQL, Arrow and viewer.
// Where a column of kinds may be without a value, the first enumerator says so, and its word is "".
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

#include "base/string_pool.h"

namespace firelane {

// Rows of a table are named by their index.
using Row = uint32_t;
inline constexpr Row kNoRow = UINT32_MAX;
enum class LaneId : uint32_t {};

// Absent numbers: ids, sequence numbers, sizes that the trace does not give.
inline constexpr int64_t kNoNumber = INT64_MIN;
// Events that were built, not read, have no place in a source file.
inline constexpr uint64_t kNoSource = UINT64_MAX;

// A process or thread id as the trace writes it: a number, or a text such as "Spans".
struct TraceId {
  int64_t number = kNoNumber;
  StringId text = kNoString;  // set when it is not a number
};

// A host or device slice.
struct SliceRef {
  Row row = kNoRow;
  bool on_device = false;
  bool operator==(const SliceRef&) const = default;
};

// A row of another table of the same part (model/raw.h). When parts are merged, its type says by how much it moves; in
// the model it is a Row.
template <typename Target>
struct PartRow {
  Row row = kNoRow;
  constexpr PartRow() = default;
  constexpr PartRow(Row r) : row(r) {}            // NOLINT(google-explicit-constructor)
  constexpr operator Row() const { return row; }  // NOLINT(google-explicit-constructor)
};
using DetailRow = PartRow<struct DetailsOfItsKind>;  // op_details, call_details, kernel_details, ...: by the row's kind
using CommRow = PartRow<struct CommDetails>;
using OpRow = PartRow<struct OpDetails>;

// ---- kinds ------------------------------------------------------------------------------

// The words of a kind, in the order of its enumerators, of which `last` is the last one.
#define FL_WORDS(Kind, last, ...)                                                  \
  inline constexpr std::string_view k##Kind##Words[] = {__VA_ARGS__};              \
  static_assert(std::size(k##Kind##Words) == static_cast<size_t>(Kind::last) + 1); \
  constexpr std::span<const std::string_view> words_of(Kind) { return k##Kind##Words; }

enum class HostKind : uint8_t { kOp, kAnnotation, kPython, kRuntime, kDriver, kOverhead, kSpan, kOther };
FL_WORDS(HostKind, kOther, "op", "annotation", "python", "runtime", "driver", "overhead", "span", "other")

enum class DeviceKind : uint8_t { kKernel, kCopy, kSet, kSync, kEvent, kCollective, kAnnotation, kOther };
FL_WORDS(DeviceKind, kOther, "kernel", "copy", "set", "sync", "event", "collective", "annotation", "other")

// A Python function that is the call of an nn.Module, and how it is named: by its path in the model, with its type
// ("model.layers.3 (Linear)", our recorder), or by its type and a number ("nn.Module: Linear_3", Kineto).
enum class ModuleCall : uint8_t { kNone, kPath, kNumbered };
FL_WORDS(ModuleCall, kNumbered, "", "path", "numbered")

// What torch opened a host slice for, as its name says (model/host_role.h).
enum class HostRole : uint8_t {
  kNone,
  kStep,              // ProfilerStep#3
  kBatchInProcess,    // a DataLoader without workers makes the next batch
  kBatchFromWorkers,  // a DataLoader takes it from its workers
  kBatch,             // another iterator of a DataLoader
  kOtherBatch,        // a DataPipe
  kOptimizerStep,
  kZeroGrad,
  kOptimizer,        // another range of an optimizer
  kBackwardNode,     // the autograd engine runs a node of the graph
  kYoungCollection,  // garbage: not of the oldest generation
  kFullCollection,
  kCollection  // of a generation that the name does not say
};
FL_WORDS(HostRole, kCollection, "", "step", "batch in process", "batch from workers", "batch", "other batch",
         "optimizer step", "zero_grad", "optimizer", "backward node", "young collection", "full collection",
         "collection")

enum class LaneKind : uint8_t { kThread, kStream, kAsync, kOther };
FL_WORDS(LaneKind, kOther, "thread", "stream", "async", "other")

// Whose work a lane shows.
enum class LaneOwner : uint8_t { kProgram, kProfiler };
FL_WORDS(LaneOwner, kProfiler, "program", "profiler")

// What keeps a kernel from filling the multiprocessors (model/occupancy.h).
enum class OccupancyLimit : uint8_t { kUnknown, kNone, kWarps, kBlocks, kRegisters, kSharedMemory, kGrid };
FL_WORDS(OccupancyLimit, kGrid, "", "none", "warps", "blocks", "registers", "shared memory", "grid")

enum class MemoryEventKind : uint8_t { kAlloc, kFree, kOutOfMemory };
FL_WORDS(MemoryEventKind, kOutOfMemory, "alloc", "free", "out_of_memory")

enum class AllocatorEventKind : uint8_t { kFreeCompleted, kSegmentAlloc, kSegmentFree, kSegmentMap, kSegmentUnmap };
FL_WORDS(AllocatorEventKind, kSegmentUnmap, "free_completed", "segment_alloc", "segment_free", "segment_map",
         "segment_unmap")

enum class AllocatorBlockState : uint8_t { kFree, kWaiting, kAllocated };
FL_WORDS(AllocatorBlockState, kAllocated, "free", "waiting", "allocated")

// Which way a copy goes, in CUPTI's order: from and to host, device, array (of a texture), or a peer device.
enum class CopyDirection : uint8_t { kUnknown, kHtoD, kDtoH, kHtoA, kAtoH, kAtoA, kAtoD, kDtoA, kDtoD, kHtoH, kPtoP };
FL_WORDS(CopyDirection, kPtoP, "", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")

// What memory a copy or memset touches, in CUPTI's order.
enum class MemoryKind : uint8_t {
  kUnknown,
  kPageable,
  kPinned,
  kDevice,
  kArray,
  kManaged,
  kDeviceStatic,
  kManagedStatic
};
FL_WORDS(MemoryKind, kManagedStatic, "", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static",
         "Managed Static")

// Device work that the recording holds only a part of.
enum class WindowMark : uint8_t { kInside, kBeganBefore, kEndsAfter, kBoth };
FL_WORDS(WindowMark, kBoth, "", "began before", "ends after", "began before, ends after")

// The library that carries out a collective. Gloo, MPI and UCC do so in threads of the host.
enum class CommBackend : uint8_t { kUnknown, kNccl, kGloo, kMpi, kUcc, kXccl, kHccl };
FL_WORDS(CommBackend, kHccl, "", "nccl", "gloo", "mpi", "ucc", "xccl", "hccl")
constexpr bool runs_on_host(CommBackend backend) {
  return backend == CommBackend::kGloo || backend == CommBackend::kMpi || backend == CommBackend::kUcc;
}

// How far a collective had come when a flight recorder was read.
enum class CommState : uint8_t { kUnknown, kScheduled, kStarted, kCompleted };
FL_WORDS(CommState, kCompleted, "", "scheduled", "started", "completed")

// Who wrote a trace.
enum class Origin : uint8_t {
  kOther,
  kKineto,
  kFirelane,
  kAscend,
  kNsight,
  kXPlane,
  kRocprof,
  kPerfetto,
  kMemorySnapshot,
  kFlightRecorder,
  kStacks,
  kExecutionTrace
};
FL_WORDS(Origin, kExecutionTrace, "other", "Kineto", "Firelane", "Ascend", "Nsight Systems", "XPlane", "rocprof",
         "Perfetto", "memory snapshot", "flight recorder", "stacks", "execution trace")

// A dump has the state, the last events or the order of one part of torch, and no times of operators or kernels.
constexpr bool is_dump(Origin origin) {
  return origin == Origin::kMemorySnapshot || origin == Origin::kFlightRecorder || origin == Origin::kExecutionTrace;
}

// What an operator does with data that another operator touched before.
enum class DataUse : uint8_t { kRead, kOverwrite, kUnknown };
FL_WORDS(DataUse, kUnknown, "read", "overwrite", "unknown")

// What the program computes on beside the CPU. The words are those of torch.device, but for AMD's GPUs, which torch
// calls cuda too.
enum class Accelerator : uint8_t { kUnknown, kCuda, kHip, kXpu, kHpu, kMtia, kNpu, kTpu, kPrivateUse1 };
FL_WORDS(Accelerator, kPrivateUse1, "", "cuda", "hip", "xpu", "hpu", "mtia", "npu", "tpu", "privateuse1")

// What lanes of such a device are called: "GPU 0".
constexpr std::string_view device_word(Accelerator accelerator) {
  constexpr std::string_view kWords[] = {"GPU", "GPU", "GPU", "XPU", "HPU", "MTIA", "NPU", "TPU", "device"};
  return kWords[static_cast<size_t>(accelerator)];
}

enum class InstantScope : uint8_t { kThread, kProcess, kGlobal };
FL_WORDS(InstantScope, kGlobal, "thread", "process", "global")

// How a step was spent, seen from the recorder.
enum class StepDisturbance : uint8_t {
  kNone,    // nothing was recorded: the true step
  kWarmup,  // hooks were on, nothing was kept
  kRecorded,
  kLight,  // recorded without ops
};
FL_WORDS(StepDisturbance, kLight, "none", "warmup", "recorded", "light")

template <typename T>
concept IsKind = sizeof(T) == 1 && requires(T kind) { words_of(kind); };

template <IsKind Kind>
constexpr std::string_view name_of(Kind kind) {
  return words_of(kind)[static_cast<size_t>(kind)];
}

inline constexpr size_t kHostKindCount = std::size(kHostKindWords);
inline constexpr size_t kDeviceKindCount = std::size(kDeviceKindWords);
inline constexpr size_t kOccupancyLimitCount = std::size(kOccupancyLimitWords);

// A runtime or driver call: its details are call_details; those of ops and annotations are op_details.
constexpr bool is_call(HostKind kind) { return kind == HostKind::kRuntime || kind == HostKind::kDriver; }

// Device work that a call queues. Collectives that other devices report by themselves have no such call.
constexpr bool is_launched(DeviceKind kind) {
  return kind == DeviceKind::kKernel || kind == DeviceKind::kCopy || kind == DeviceKind::kSet;
}

// What keeps a device busy. Synchronization records, event records and annotations on a stream are not work: they mark
// or wait.
constexpr bool is_device_work(DeviceKind kind) { return is_launched(kind) || kind == DeviceKind::kCollective; }

}  // namespace firelane
