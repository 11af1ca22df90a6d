// The trace in memory: one columnar table per kind of thing, one string pool.
//
// Every reader fills a RawTrace (model/raw.h), assemble() turns it into this, every
// analysis reads it, and nothing else holds trace data. Times are int64 ns since the
// start of the trace (the earliest slice); info.start_ns says where that lies on the
// recorder's own clock. Rows are named by their index; kNoRow means "none".
//
// Invariants, kept by assemble():
//  - host and device slices are sorted by (lane, start, longer first, file order), so the
//    slices of a lane are one contiguous range: lanes.host_begin[l] .. host_end[l];
//  - a slice's parent is the innermost slice open on its lane that also ends after it
//    (a slice that outlives the one open before it closes that one: torch's rule);
//  - memory events, instants and counter samples are sorted by time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/string_pool.h"
#include "model/stats.h"

namespace firelane {

using Row = uint32_t;
inline constexpr Row kNoRow = UINT32_MAX;
enum class LaneId : uint32_t {};

// Absent numbers: ids, sequence numbers, sizes that the trace does not give.
inline constexpr int64_t kNoNumber = INT64_MIN;
// Events that were built, not read, have no place in a source file.
inline constexpr uint64_t kNoSource = UINT64_MAX;

enum class HostKind : uint8_t { kOp, kAnnotation, kPython, kRuntime, kDriver, kOverhead, kSpan, kOther };
enum class DeviceKind : uint8_t { kKernel, kCopy, kSet, kSync, kEvent, kCollective, kAnnotation, kOther };
enum class LaneKind : uint8_t { kThread, kStream, kAsync, kOther };
// What keeps a kernel from filling the multiprocessors (model/occupancy.h).
enum class OccupancyLimit : uint8_t { kUnknown, kNone, kWarps, kBlocks, kRegisters, kSharedMemory, kGrid };
enum class MemoryKind : uint8_t { kAlloc, kFree, kOutOfMemory };
enum class AllocatorEventKind : uint8_t { kFreeCompleted, kSegmentAlloc, kSegmentFree, kSegmentMap, kSegmentUnmap };
enum class AllocatorBlockState : uint8_t { kFree, kWaiting, kAllocated };
inline constexpr size_t kHostKindCount = 8;
inline constexpr size_t kDeviceKindCount = 8;
inline constexpr size_t kOccupancyLimitCount = 7;

// A runtime or driver call: its details are call_details; those of ops and annotations are op_details.
inline bool is_call(HostKind kind) { return kind == HostKind::kRuntime || kind == HostKind::kDriver; }

// Device work that a call queues. Collectives that other devices report by themselves have no such call.
inline bool is_launched(DeviceKind kind) {
  return kind == DeviceKind::kKernel || kind == DeviceKind::kCopy || kind == DeviceKind::kSet;
}

// What keeps a device busy. Synchronisation records, event records and annotations on a stream are not work: they
// mark or wait.
inline bool is_device_work(DeviceKind kind) { return is_launched(kind) || kind == DeviceKind::kCollective; }

// "op", "annotation", ... : the words of docs, JSON, SQL and viewer.
std::string_view name_of(HostKind kind);
std::string_view name_of(DeviceKind kind);
std::string_view name_of(LaneKind kind);
std::string_view name_of(MemoryKind kind);
std::string_view name_of(AllocatorEventKind kind);
std::string_view name_of(AllocatorBlockState state);
std::string_view name_of(OccupancyLimit limit);  // "" unknown

// A process or thread id as the trace writes it: a number, or a text such as "Spans".
struct TraceId {
  int64_t number = kNoNumber;
  StringId text = kNoString;  // set when it is not a number
};

struct Lanes {
  std::vector<LaneKind> kind;
  std::vector<TraceId> pid;  // for a stream: the device index
  std::vector<TraceId> tid;  // for a stream: the stream id; for an async lane: the async id
  std::vector<StringId> process_name;
  std::vector<StringId> process_labels;  // "CPU", "GPU 0"
  std::vector<StringId> name;            // thread or stream name, as in the trace
  std::vector<int64_t> process_sort_index;
  std::vector<int64_t> sort_index;
  std::vector<Row> host_begin, host_end;      // rows of host_slices
  std::vector<Row> device_begin, device_end;  // rows of device_slices
  size_t size() const { return kind.size(); }
};

// Ops, annotations, Python functions, runtime and driver calls, and what else has a
// start and an end on the host.
struct HostSlices {
  std::vector<LaneId> lane;
  std::vector<int64_t> start_ns;
  std::vector<int64_t> duration_ns;
  std::vector<StringId> name;
  std::vector<StringId> category;  // as in the trace: "cpu_op"
  std::vector<HostKind> kind;
  std::vector<Row> parent;       // innermost enclosing host slice on the lane
  std::vector<uint16_t> depth;   // 0 = outermost; stops at 65535
  std::vector<Row> detail;       // ops and annotations: op_details; runtime and driver: call_details
  std::vector<uint64_t> source;  // where the event lies in the source, for its args
  size_t size() const { return start_ns.size(); }
  int64_t end_ns(Row row) const { return start_ns[row] + duration_ns[row]; }
};

// What only ops and annotations have. One row each, in file order.
struct OpDetails {
  std::vector<Row> slice;
  std::vector<int64_t> external_id;
  std::vector<int64_t> sequence_number;
  std::vector<int64_t> forward_thread;
  std::vector<StringId> input_dims;       // JSON text: [[16, 512], [], []]
  std::vector<StringId> input_types;      // JSON text: ["float", "Scalar"]
  std::vector<StringId> input_strides;    // JSON text
  std::vector<StringId> concrete_inputs;  // JSON text
  std::vector<StringId> stack;            // as in the trace: innermost first, joined by ;
  std::vector<StringId> module_hierarchy;
  std::vector<StringId> overload;  // "Tensor" of aten::add.Tensor; the slice's name is without it
  std::vector<int64_t> flops;      // kNoNumber unless the trace gives them
  std::vector<Row> forward;        // the forward op (host slice) of a backward op, by the trace's own links
  std::vector<Row> comm;           // comm_details
  size_t size() const { return slice.size(); }
};

// What only runtime and driver calls have. One row each, in file order.
struct CallDetails {
  std::vector<Row> slice;
  std::vector<int64_t> correlation;
  std::vector<int64_t> external_id;
  std::vector<Row> op;  // host slice of the op that made the call
  size_t size() const { return slice.size(); }
};

// Kernels, copies, sets, synchronisations, device-side annotations.
struct DeviceSlices {
  std::vector<LaneId> lane;
  std::vector<int64_t> start_ns;
  std::vector<int64_t> duration_ns;
  std::vector<StringId> name;
  std::vector<StringId> category;
  std::vector<DeviceKind> kind;
  std::vector<int64_t> correlation;
  std::vector<int64_t> external_id;
  std::vector<Row> launch;      // host slice: the runtime or driver call that queued it
  std::vector<Row> op;          // host slice: the op it belongs to
  std::vector<Row> detail;      // kernels: kernel_details; copies and sets: copy_details; syncs: sync_details
  std::vector<Row> comm;        // comm_details
  std::vector<int32_t> device;  // index; -1 unknown
  std::vector<int64_t> stream;
  std::vector<StringId> window;  // "began before", "ends after", "began before, ends after" the recording; "" inside
  std::vector<uint64_t> source;
  size_t size() const { return start_ns.size(); }
  int64_t end_ns(Row row) const { return start_ns[row] + duration_ns[row]; }
};

// What only kernels have. -1 = not in the trace. One row each, in file order.
struct KernelDetails {
  std::vector<Row> slice;
  std::vector<int32_t> grid_x, grid_y, grid_z;
  std::vector<int32_t> block_x, block_y, block_z;
  std::vector<int32_t> registers;            // per thread
  std::vector<int64_t> shared_memory_bytes;  // static + dynamic, per block
  std::vector<float> blocks_per_sm;
  std::vector<float> warps_per_sm;
  std::vector<float> occupancy_percent;         // estimated, achieved
  std::vector<OccupancyLimit> occupancy_limit;  // computed from the launch and the device
  std::vector<int64_t> context;
  std::vector<int64_t> graph_id;  // CUDA graph; kNoNumber outside of graphs
  std::vector<int64_t> graph_node_id;
  size_t size() const { return slice.size(); }
};

// Copies and sets. One row each, in file order.
struct CopyDetails {
  std::vector<Row> slice;
  std::vector<int64_t> bytes;         // kNoNumber = not in the trace
  std::vector<float> bandwidth_gb_s;  // -1 = not in the trace
  std::vector<int64_t> context;
  std::vector<int64_t> graph_id;  // CUDA graph; kNoNumber outside of graphs
  std::vector<int64_t> graph_node_id;
  std::vector<int64_t> source_device;  // of copies between devices; else kNoNumber
  std::vector<int64_t> target_device;
  size_t size() const { return slice.size(); }
};

// Device-side synchronisation records (category cuda_sync). One row each, in file order.
struct SyncDetails {
  std::vector<Row> slice;
  std::vector<int64_t> wait_on_stream;
  std::vector<int64_t> wait_on_correlation;  // of the cudaEventRecord that is waited for
  std::vector<int64_t> wait_on_event;
  std::vector<int64_t> context;
  size_t size() const { return slice.size(); }
};

// Collectives: what NCCL (or another backend) was asked to do.
struct CommDetails {
  std::vector<StringId> collective;
  std::vector<StringId> dtype;
  std::vector<int64_t> in_elements;
  std::vector<int64_t> out_elements;
  std::vector<int64_t> group_size;
  std::vector<StringId> group_name;
  std::vector<StringId> group_description;
  std::vector<StringId> group_ranks;     // JSON text, as are split sizes
  std::vector<StringId> in_split_sizes;  // elements for each rank; [] = the same for all
  std::vector<StringId> out_split_sizes;
  std::vector<int64_t> global_rank_start;  // of the group's first rank; the others follow at the stride
  std::vector<int64_t> global_rank_stride;
  std::vector<int64_t> rank;
  std::vector<int64_t> source_rank;
  std::vector<int64_t> destination_rank;
  std::vector<int64_t> sequence;
  size_t size() const { return collective.size(); }
};

struct MemoryEvents {
  std::vector<int64_t> time_ns;
  std::vector<LaneId> lane;
  std::vector<MemoryKind> kind;
  std::vector<int32_t> device_type;  // c10::DeviceType: 0 CPU, 1 CUDA, ...
  std::vector<int32_t> device;       // index; -1 for the CPU
  std::vector<uint64_t> address;
  std::vector<int64_t> bytes;  // negative = freed
  std::vector<int64_t> total_allocated_bytes;
  std::vector<int64_t> total_reserved_bytes;
  std::vector<int64_t> stream;  // its handle; 0 is the default stream; kNoNumber unknown
  std::vector<StringId> pool;   // "common", "graph 3", "pool 1"; "" unknown
  std::vector<uint64_t> source;
  size_t size() const { return time_ns.size(); }
};

// What a caching allocator did below allocations and frees: memory from and back to the driver, and when a freed block
// could be used again. Sorted by time.
struct AllocatorEvents {
  std::vector<int64_t> time_ns;
  std::vector<LaneId> lane;
  std::vector<AllocatorEventKind> kind;
  std::vector<int32_t> device_type;
  std::vector<int32_t> device;
  std::vector<uint64_t> address;
  std::vector<int64_t> bytes;
  std::vector<int64_t> stream;
  std::vector<StringId> pool;
  size_t size() const { return time_ns.size(); }
};

// What a caching allocator held when its recording began, and again after each pause: all rows of a device with the
// same time are one state, which counts instead of what was before. A device that held nothing has one segment of 0
// bytes. Sorted by time; times may lie before the trace.
struct AllocatorSegments {
  std::vector<int64_t> time_ns;
  std::vector<int32_t> device_type;
  std::vector<int32_t> device;
  std::vector<uint64_t> address;
  std::vector<int64_t> bytes;
  std::vector<int64_t> stream;
  std::vector<StringId> pool;
  std::vector<uint16_t> is_expandable;  // mapped piece by piece
  size_t size() const { return time_ns.size(); }
};
struct AllocatorBlocks {
  std::vector<int64_t> time_ns;
  std::vector<int32_t> device_type;
  std::vector<int32_t> device;
  std::vector<uint64_t> address;
  std::vector<int64_t> bytes;
  std::vector<AllocatorBlockState> state;
  size_t size() const { return time_ns.size(); }
};

struct Instants {
  std::vector<int64_t> time_ns;
  std::vector<LaneId> lane;
  std::vector<StringId> name;
  std::vector<StringId> category;
  std::vector<char> scope;  // 't' thread, 'p' process, 'g' global
  std::vector<uint64_t> source;
  size_t size() const { return time_ns.size(); }
};

struct CounterTracks {
  std::vector<TraceId> pid;
  std::vector<StringId> name;    // "GPU 0 power"
  std::vector<StringId> series;  // the arg's key; "" when there is one without a name
  size_t size() const { return name.size(); }
};

struct CounterSamples {
  std::vector<int64_t> time_ns;
  std::vector<uint32_t> track;  // row of counter_tracks
  std::vector<double> value;
  size_t size() const { return time_ns.size(); }
};

// A host or device slice.
struct SliceRef {
  Row row = kNoRow;
  bool on_device = false;
  bool operator==(const SliceRef&) const = default;
};

// Arrows of the trace that are not op -> launch -> device work (device_slices.launch and .op)
// or forward -> backward (op_details.forward).
struct Flows {
  std::vector<StringId> name;
  std::vector<StringId> category;
  std::vector<int64_t> id;
  std::vector<SliceRef> from;
  std::vector<SliceRef> to;
  size_t size() const { return name.size(); }
};

// One iteration: ProfilerStep#N. Sorted by start.
struct Steps {
  std::vector<int64_t> number;
  std::vector<Row> slice;  // host slice; kNoRow when the step was found otherwise
  std::vector<int64_t> start_ns;
  std::vector<int64_t> duration_ns;
  size_t size() const { return number.size(); }
};

// How a step was spent, seen from the recorder.
enum class StepDisturbance : uint8_t {
  kNone,    // nothing was recorded: the true step
  kWarmup,  // hooks were on, nothing was kept
  kRecorded,
};

// Steps as a recorder of ours timed them, those it did not record included. Sorted by start;
// starts may lie before the trace. Empty for other formats.
struct TimedSteps {
  std::vector<int64_t> number;
  std::vector<StepDisturbance> disturbance;
  std::vector<int64_t> start_ns;
  std::vector<int64_t> duration_ns;
  std::vector<int64_t> device_ns;  // between its ends, by the device's own clock; kNoNumber, or none at all: unknown
  size_t size() const { return number.size(); }
};

// What a recorder of ours says about itself. Empty for other formats.
struct RecorderInfo {
  struct Loss {
    std::string reason;
    uint64_t count = 0;  // events; 0 = unknown or not about events
  };
  struct Cost {
    std::string event;  // "op", "op+inputs", "memory", "python"
    double ns = 0;      // that one such event adds to the program, measured in it
  };
  // How the device's clock was laid on the recorder's: by the line through paired readings of both.
  struct DeviceClock {
    uint64_t readings = 0;  // 0: no device was recorded
    int64_t error_ns = 0;   // a device time may be off by this much
    double drift_ppm = 0;   // of the device's clock against the host's
  };
  // When devices were recorded: until stop() was called, which then waited for them. kNoNumber: not said.
  struct DeviceWindow {
    int64_t start_ns = kNoNumber;
    int64_t end_ns = kNoNumber;
  };
  std::string host_name;
  std::string command;
  DeviceClock device_clock;
  DeviceWindow device_window;
  std::string stopped_because;  // it ended by itself: why
  std::vector<Loss> losses;
  std::vector<Cost> costs;
};

struct DeviceProperties {
  int64_t id = kNoNumber;
  std::string name;
  int64_t total_memory_bytes = kNoNumber;
  int64_t compute_major = kNoNumber;
  int64_t compute_minor = kNoNumber;
  int64_t multiprocessors = kNoNumber;
  int64_t max_threads_per_multiprocessor = kNoNumber;
  int64_t registers_per_multiprocessor = kNoNumber;
  int64_t shared_memory_per_multiprocessor_bytes = kNoNumber;
  int64_t warp_size = kNoNumber;
};

struct DistributedInfo {
  bool present = false;
  std::string backend;
  int64_t rank = kNoNumber;
  int64_t world_size = kNoNumber;
  std::string nccl_version;
};

// A top-level key of the trace other than its events; value is JSON text.
struct MetadataEntry {
  std::string key;
  std::string json;
};

struct TraceInfo {
  std::string path;
  std::string format;          // "Kineto JSON", "Chrome JSON", "Firelane"
  uint64_t file_bytes = 0;     // on disk
  uint64_t content_bytes = 0;  // after decompression
  bool compressed = false;
  uint64_t event_count = 0;  // events read, of every kind, metadata included
  int64_t start_ns = 0;      // trace start on the recorder's clock; + base_time_ns = Unix time
  int64_t duration_ns = 0;   // first start to last end of all slices but spans
  int64_t base_time_ns = 0;  // 0 = the trace does not say
  std::vector<DeviceProperties> devices;
  DistributedInfo distributed;
  RecorderInfo recorder;
  std::vector<MetadataEntry> metadata;  // in file order, the two above included
};

// Where events came from, to show args that no analysis reads. Reading is slow
// (the source is opened again), costs nothing until asked, and is thread-safe.
class ArgSource {
 public:
  virtual ~ArgSource() = default;
  // The whole event at `source` as valid, compact-or-not JSON text of one object.
  virtual Result<std::string> event_json(uint64_t source) const = 0;
  // The same for many events; `sources` ascending; `visit` is called in that order.
  virtual Result<void> visit_events(const std::vector<uint64_t>& sources,
                                    const std::function<void(size_t index, std::string_view json)>& visit) const = 0;
};

struct Model {
  TraceInfo info;
  StringPool strings;
  Lanes lanes;
  HostSlices host_slices;
  OpDetails op_details;
  CallDetails call_details;
  DeviceSlices device_slices;
  KernelDetails kernel_details;
  CopyDetails copy_details;
  SyncDetails sync_details;
  CommDetails comm_details;
  MemoryEvents memory_events;
  AllocatorEvents allocator_events;
  AllocatorSegments allocator_segments;
  AllocatorBlocks allocator_blocks;
  Instants instants;
  CounterTracks counter_tracks;
  CounterSamples counter_samples;
  Flows flows;
  Steps steps;
  TimedSteps timed_steps;
  LossCounts losses;
  std::shared_ptr<const ArgSource> args;  // null when there is no source to ask

  std::string_view text(StringId id) const { return strings.view(id); }
  // REQUIRES: the kind of `row` is kOp or kAnnotation / kRuntime or kDriver.
  Row op_detail(Row row) const { return host_slices.detail[row]; }
  Row call_detail(Row row) const { return host_slices.detail[row]; }
  // "688" or "Spans".
  std::string id_text(const TraceId& id) const;
  const MetadataEntry* find_metadata(std::string_view key) const;
};

}  // namespace firelane
