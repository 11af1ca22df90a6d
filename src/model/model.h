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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/string_pool.h"
#include "model/front.h"
#include "model/stats.h"
#include "model/tables.h"

namespace firelane {

// What a recorder of ours says about itself. Empty for other formats.
struct RecorderInfo {
  struct Loss {
    std::string reason;
    uint64_t count = 0;  // events; 0 = unknown or not about events
  };
  struct Cost {
    std::string event;  // "op", "op+inputs", "line" (of an op), "memory", "python"
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

// A process group that this rank is a member of.
struct ProcessGroup {
  std::string name;
  std::string description;
  std::string backend;
  std::vector<int64_t> ranks;          // global; empty: the trace does not say
  int64_t size = kNoNumber;            // of a list that was cut
  int64_t first_sequence = kNoNumber;  // collectives of the group before the recording
};

// One rank of several: as torch.profiler writes it (distributedInfo), our recorder, or a flight recorder.
struct DistributedInfo {
  bool present = false;
  std::string backend;
  int64_t rank = kNoNumber;
  int64_t world_size = kNoNumber;
  int64_t local_rank = kNoNumber;        // on its host
  int64_t local_world_size = kNoNumber;  // ranks on its host
  std::string launcher;                  // torchrun, mpirun, slurm; "" = the trace does not say
  std::string nccl_version;
  std::vector<ProcessGroup> groups;
};

// Where and how the program ran, as our recorder notes it; kNoNumber and "" where a trace does not say.
struct Environment {
  Front front = Front::kTorch;
  std::string front_name;  // as recorded
  std::string python;
  std::string commit;  // of the recorded program
  std::string cpu;
  int64_t cores = kNoNumber;
  int64_t cores_allowed = kNoNumber;  // that the process may run on, or that its CPU limit gives time for
  double cpu_quota = 0;               // the container's CPU limit, in cores; 0: none, or not known
  int64_t memory_bytes = kNoNumber;
  std::string torch;
  int64_t torch_threads = kNoNumber;
  int64_t torch_interop_threads = kNoNumber;
  int64_t deterministic_algorithms = kNoNumber;  // this and the next three: 0 or 1
  int64_t cudnn_benchmark = kNoNumber;
  int64_t cudnn_deterministic = kNoNumber;
  int64_t matmul_tf32 = kNoNumber;

  // How the front that recorded this asks for `option`.
  std::string_view flag(RecordOption option) const { return flag_of(front, option); }
};

// A top-level key of the trace other than its events. The reader also gives the value of plain numbers, texts and lists
// of numbers.
struct MetadataEntry {
  std::string key;
  std::string json;
  std::optional<double> number{};
  std::string text{};
  std::vector<double> numbers{};
};

// A trace of light steps: recorded without ops, whose device work got its ops by comparison with full steps.
struct LightInfo {
  bool is_light = false;
  int64_t work = 0;     // kernels, memcpys and memsets
  int64_t same = 0;     // have an op: the same place in the sequence of a full step, with the same launch
  int64_t resized = 0;  // have an op, too: the same place and name, with another grid or size
  int64_t other() const { return work - same - resized; }  // no op
};

// A file of the same run that was joined to the trace: an execution trace, a memory snapshot.
struct JoinedFile {
  Origin origin = Origin::kOther;
  std::string path;
  int64_t entries = 0;  // nodes, or events
  int64_t used = 0;     // that have a place in the trace
  // How far its clock was seen to be off, by events that both have; kNoNumber: they share none.
  int64_t clock_offset_ns = kNoNumber;
};

struct TraceInfo {
  std::string path;
  std::string format;  // "Kineto JSON", "Chrome JSON", "Firelane": for people
  Origin origin = Origin::kOther;
  Accelerator accelerator = Accelerator::kUnknown;
  uint64_t file_bytes = 0;     // on disk
  uint64_t content_bytes = 0;  // after decompression
  std::string compression;     // "gzip", "zstd"; "" = none
  uint64_t event_count = 0;    // events read, of every kind, metadata included
  int64_t start_ns = 0;        // trace start on the recorder's clock; + base_time_ns = Unix time
  int64_t duration_ns = 0;     // first start to last end of all slices but spans
  int64_t base_time_ns = 0;    // 0 = the trace does not say
  std::vector<DeviceProperties> devices;
  DistributedInfo distributed;
  Environment environment;
  RecorderInfo recorder;
  LightInfo light;
  bool has_order_only = false;     // what stands as times are places in the order of calls: an execution trace alone
  std::vector<JoinedFile> joined;  // in the order of joining
  std::vector<MetadataEntry> metadata;  // in file order, what stands above included
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

struct CopyKinds {
  CopyDirection direction = CopyDirection::kUnknown;
  MemoryKind source = MemoryKind::kUnknown;
  MemoryKind target = MemoryKind::kUnknown;
  bool touches(MemoryKind kind) const { return source == kind || target == kind; }
};

struct Model {
  TraceInfo info;
  StringPool strings;
#define FL_MEMBER(Table, name, meaning) Table name;
  FL_TABLES(FL_MEMBER, FL_MEMBER)
#undef FL_MEMBER
  LossCounts losses;
  std::shared_ptr<const ArgSource> args;  // null when there is no source to ask
  // Light steps of the same recording: a trace of their own, which begins at 0, nearer to the untouched program. Null
  // where it has none, or nothing else.
  std::shared_ptr<const Model> light;

  std::string_view text(StringId id) const { return strings.view(id); }
  // REQUIRES: the kind of `row` is kOp or kAnnotation / kRuntime or kDriver.
  Row op_detail(Row row) const { return host_slices.detail[row]; }
  Row call_detail(Row row) const { return host_slices.detail[row]; }
  // Which way a copy goes and what memory it touches; unknown for all else.
  CopyKinds copy_kinds(Row device_row) const;
  // A collective that a backend carries out on the host: gloo:all_reduce.
  bool is_host_collective(Row host_row) const;
  // "688" or "Spans".
  std::string id_text(const TraceId& id) const;
  const MetadataEntry* find_metadata(std::string_view key) const;
};

}  // namespace firelane
