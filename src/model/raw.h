// What a reader produces: rows in file order, in parts that were filled independently.
//
// Each part belongs to one RawPool (its own strings and lanes), so that readers can run
// in parallel without sharing anything; assemble() merges the pools, sorts, nests and
// links. Ids inside a part speak of its pool.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/page_allocator.h"
#include "model/model.h"

namespace firelane {

// Rows live in pages of their own, so that reserving far too many costs nothing and
// freeing a part gives its memory back at once.
template <typename T>
using RawVector = std::vector<T, PageAllocator<T>>;

struct RawHostSlice {
  int64_t start_ns = 0;  // on the recorder's clock, as in the file
  int64_t duration_ns = 0;
  uint64_t source = kNoSource;
  StringId name{};
  StringId category{};
  LaneId lane{};
  Row detail = kNoRow;  // index into this part's ops or calls
  HostKind kind = HostKind::kOther;
};

struct RawOp {
  int64_t external_id = kNoNumber;
  int64_t sequence_number = kNoNumber;
  int64_t forward_thread = kNoNumber;
  int64_t flops = kNoNumber;
  StringId input_dims{};
  StringId input_types{};
  StringId input_strides{};
  StringId concrete_inputs{};
  StringId stack{};
  StringId module_hierarchy{};
  StringId overload{};
  Row comm = kNoRow;  // index into this part's comms
};

struct RawCall {
  int64_t correlation = kNoNumber;
  int64_t external_id = kNoNumber;
};

struct RawComm {
  StringId collective{};
  StringId dtype{};
  StringId group_name{};
  StringId group_description{};
  StringId group_ranks{};
  StringId in_split_sizes{};
  StringId out_split_sizes{};
  int64_t global_rank_start = kNoNumber;
  int64_t global_rank_stride = kNoNumber;
  int64_t in_elements = kNoNumber;
  int64_t out_elements = kNoNumber;
  int64_t group_size = kNoNumber;
  int64_t rank = kNoNumber;
  int64_t source_rank = kNoNumber;
  int64_t destination_rank = kNoNumber;
  int64_t sequence = kNoNumber;
};

struct RawDeviceSlice {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  uint64_t source = kNoSource;
  int64_t correlation = kNoNumber;
  int64_t external_id = kNoNumber;
  int64_t stream = kNoNumber;
  StringId name{};
  StringId category{};
  LaneId lane{};
  int32_t device = -1;
  Row detail = kNoRow;  // index into this part's kernels, copies or syncs
  Row comm = kNoRow;
  DeviceKind kind = DeviceKind::kOther;
};

struct RawKernel {
  int32_t grid[3] = {-1, -1, -1};
  int32_t block[3] = {-1, -1, -1};
  int32_t registers = -1;
  float blocks_per_sm = -1;
  float warps_per_sm = -1;
  float occupancy_percent = -1;
  int64_t shared_memory_bytes = kNoNumber;
  int64_t context = kNoNumber;
  int64_t graph_id = kNoNumber;
  int64_t graph_node_id = kNoNumber;
};

struct RawCopy {
  int64_t bytes = kNoNumber;
  float bandwidth_gb_s = -1;
  int64_t context = kNoNumber;
  int64_t graph_id = kNoNumber;
  int64_t graph_node_id = kNoNumber;
  int64_t source_device = kNoNumber;
  int64_t target_device = kNoNumber;
};

struct RawSync {
  int64_t wait_on_stream = kNoNumber;
  int64_t wait_on_correlation = kNoNumber;
  int64_t wait_on_event = kNoNumber;
  int64_t context = kNoNumber;
};

struct RawMemory {
  int64_t time_ns = 0;
  uint64_t source = kNoSource;
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t total_allocated_bytes = kNoNumber;
  int64_t total_reserved_bytes = kNoNumber;
  LaneId lane{};
  int32_t device_type = 0;
  int32_t device = -1;
  MemoryKind kind = MemoryKind::kAlloc;
  int64_t stream = kNoNumber;
  StringId pool{};
};

struct RawAllocatorEvent {
  int64_t time_ns = 0;
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t stream = kNoNumber;
  StringId pool{};
  LaneId lane{};
  int32_t device_type = 0;
  int32_t device = -1;
  AllocatorEventKind kind = AllocatorEventKind::kFreeCompleted;
};

struct RawAllocatorSegment {
  int64_t time_ns = 0;
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t stream = kNoNumber;
  StringId pool{};
  int32_t device_type = 0;
  int32_t device = -1;
  bool is_expandable = false;
};

struct RawAllocatorBlock {
  int64_t time_ns = 0;
  uint64_t address = 0;
  int64_t bytes = 0;
  int32_t device_type = 0;
  int32_t device = -1;
  AllocatorBlockState state = AllocatorBlockState::kFree;
};

struct RawInstant {
  int64_t time_ns = 0;
  uint64_t source = kNoSource;
  StringId name{};
  StringId category{};
  LaneId lane{};
  char scope = 't';
};

struct RawCounter {
  int64_t time_ns = 0;
  double value = 0;
  TraceId pid;
  StringId name{};
  StringId series{};
};

enum class FlowPhase : uint8_t { kStart, kStep, kEnd };

// One end of an arrow; two of the same (category, name, id) make a flow.
struct RawFlow {
  int64_t time_ns = 0;
  int64_t id = 0;
  StringId name{};
  StringId category{};
  LaneId lane{};
  FlowPhase phase = FlowPhase::kStart;
  bool bind_enclosing = false;  // "bp": "e"
};

// A begin or end that finds its partner only when all parts are there (B/E on a lane,
// b/e/n by id). `id` is the text of scope and id for async events, kNoString for B/E.
struct RawEdge {
  int64_t time_ns = 0;
  uint64_t source = kNoSource;
  StringId name{};
  StringId category{};
  StringId id{};
  LaneId lane{};
  char phase = 'B';  // B E b e n
};

// Readers keep times and durations within these, so that sums and differences fit int64.
inline constexpr int64_t kMinTimeNs = -1'000'000'000'000'000'000;
inline constexpr int64_t kMaxTimeNs = 4'000'000'000'000'000'000;
inline constexpr int64_t kMaxDurationNs = 4'000'000'000'000'000'000;

// Names of processes and threads: ph M.
struct RawLaneName {
  enum class What : uint8_t { kProcessName, kProcessLabels, kProcessSortIndex, kThreadName, kThreadSortIndex };
  LaneId lane{};
  What what = What::kThreadName;
  StringId text{};
  int64_t number = kNoNumber;
};

// Strings and lanes that parts refer to. Filled by one thread.
class RawPool {
 public:
  StringPool strings;
  struct Lane {
    TraceId pid;
    TraceId tid;
  };
  std::vector<Lane> lanes;

  LaneId lane(const TraceId& pid, const TraceId& tid);
  TraceId text_id(std::string_view text) { return {.number = kNoNumber, .text = strings.intern(text)}; }

 private:
  struct Key {
    int64_t pid_number, tid_number;
    uint32_t pid_text, tid_text;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, LaneId, KeyHash> lane_of_;
};

struct RawPart {
  uint32_t pool = 0;  // index into RawTrace::pools
  RawVector<RawHostSlice> host_slices;
  RawVector<RawOp> ops;
  RawVector<RawCall> calls;
  RawVector<RawDeviceSlice> device_slices;
  RawVector<RawKernel> kernels;
  RawVector<RawCopy> copies;
  RawVector<RawSync> syncs;
  RawVector<RawComm> comms;
  RawVector<RawMemory> memory;
  RawVector<RawAllocatorEvent> allocator_events;
  RawVector<RawAllocatorSegment> allocator_segments;
  RawVector<RawAllocatorBlock> allocator_blocks;
  RawVector<RawInstant> instants;
  RawVector<RawCounter> counters;
  RawVector<RawFlow> flows;
  RawVector<RawEdge> edges;
  std::vector<RawLaneName> lane_names;
  LossCounts losses;
  uint64_t event_count = 0;
};

struct RawTrace {
  TraceInfo info;  // start_ns and duration_ns are computed by assemble()
  std::deque<RawPool> pools;
  std::deque<RawPart> parts;  // in file order
  TimedSteps timed_steps;     // on the recorder's clock, sorted by start
  LossCounts losses;
  std::shared_ptr<const ArgSource> args;
};

// Merges, sorts, nests and links. Uses up to `threads` threads.
Model assemble(RawTrace&& raw, unsigned threads = 1);

}  // namespace firelane
