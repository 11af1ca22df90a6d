// The fields of one event as they stand in the text, and their way into rows.
//
// The parser (event_parser.cc) collects RawEvent without looking at the order of keys; EventRows
// decides by phase and category what the event is. Tokens are JSON text: strings with
// their quotes and escapes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/json/categories.h"
#include "model/raw.h"

namespace firelane::importer {

// Args that some analysis reads. All others stay in the file until somebody asks (ArgSource).
enum class ArgId : uint8_t {
  kExternalId,
  kCorrelation,
  kSequenceNumber,
  kForwardThread,
  kCallId,
  kInputDims,
  kInputTypes,
  kInputStrides,
  kConcreteInputs,
  kCallStack,
  kCallFrom,
  kModuleHierarchy,
  kOverload,
  kFlops,
  kFinished,
  kDevice,
  kStream,
  kContext,
  kGrid,
  kBlock,
  kRegisters,
  kSharedMemory,
  kBlocksPerSm,
  kWarpsPerSm,
  kOccupancy,
  kGraphId,
  kGraphNodeId,
  kBytes,
  kBandwidth,
  kFromDevice,
  kToDevice,
  kWaitOnStream,
  kWaitOnCorrelation,
  kWaitOnEvent,
  kMemoryBytes,
  kMemoryAddress,
  kMemoryTotalAllocated,
  kMemoryTotalReserved,
  kMemoryDeviceType,
  kMemoryDeviceId,
  kCollective,
  kDtype,
  kInElements,
  kOutElements,
  kGroupSize,
  kGroupName,
  kGroupDescription,
  kGroupRanks,
  kInSplitSizes,
  kOutSplitSizes,
  kGlobalRankStart,
  kGlobalRankStride,
  kRank,
  kSourceRank,
  kDestinationRank,
  kCommSequence,
  kCommState,
  kName,
  kLabels,
  kSortIndex,
  kTaskType,       // Ascend: what kind of unit ran it
  kLevel,          // Ascend: which layer of CANN was called
  kDirection,      // of a copy, where the name does not say it
  kBytesAccessed,  // XLA, in our own export: this and the next three
  kHloCategory,
  kHloOp,
  kProgram,
  kDataNode,  // in our own export of execution traces, this and the next
  kDataDependencies,
  kUnknown,
};
inline constexpr size_t kArgCount = 128;  // a power of two above the number of ids
static_assert(static_cast<size_t>(ArgId::kUnknown) < kArgCount);

// `key` points behind the opening quote; at least kTextPadding bytes are readable.
ArgId arg_id(const char* key);

struct RawEvent {
  std::string_view phase, category, name, pid, tid, ts, dur, id, scope, instant_scope;
  bool bind_enclosing = false;
  std::array<std::string_view, kArgCount> args;
  std::array<ArgId, kArgCount> seen_args{};  // to clear only what was set
  size_t seen_count = 0;
  std::vector<std::pair<std::string_view, std::string_view>> series;  // of a counter

  void clear();
  std::string_view arg(ArgId which) const { return args[static_cast<size_t>(which)]; }
};

class EventRows {
 public:
  explicit EventRows(RawPool& pool) : pool_(pool) {}

  // Rows go into `part` from now on; `text_bytes` says how many to expect.
  void begin_part(RawPart& part, size_t text_bytes);
  void add(const RawEvent& event, uint64_t source);

 private:
  void add_slice(const RawEvent& event, uint64_t source, int64_t start_ns);
  // What the event is where its category leaves that open.
  Category refined(const RawEvent& event, Category category) const;
  void add_device_slice(const RawEvent& event, RawDeviceSlice row, DeviceKind kind);
  void add_memory(const RawEvent& event, uint64_t source, int64_t time_ns, bool out_of_memory);
  void add_counter(const RawEvent& event, int64_t time_ns);
  void add_flow(const RawEvent& event, int64_t time_ns, FlowPhase phase);
  void add_edge(const RawEvent& event, uint64_t source, int64_t time_ns, char phase);
  void add_metadata(const RawEvent& event);
  Row add_comm(const RawEvent& event);

  bool read_time(const RawEvent& event, int64_t& time_ns);
  int64_t read_duration(const RawEvent& event);
  int64_t number(const RawEvent& event, ArgId which);
  int64_t call_id(const RawEvent& event);
  void add_data_dependencies(std::string_view token, Row op);
  float real(const RawEvent& event, ArgId which);
  StringId string(std::string_view token);
  StringId json_text(const RawEvent& event, ArgId which);
  TraceId trace_id(std::string_view token);
  LaneId lane(const RawEvent& event);
  const Category& category(const RawEvent& event, StringId& id);

  RawPool& pool_;
  RawPart* part_ = nullptr;
  size_t expected_rows_ = 0;

  // What the last events had, to look it up once.
  std::string last_pid_, last_tid_;
  LaneId last_lane_{};
  bool has_last_lane_ = false;
  std::vector<Category> categories_;  // by StringId
  std::vector<bool> category_known_;
  std::string last_category_text_;
  StringId last_category_{};
  std::string unescaped_;
};

}  // namespace firelane::importer
