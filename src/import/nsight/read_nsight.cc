#include "import/nsight/read_nsight.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "import/nsight/facts.h"
#include "import/nsight/gpu_metrics.h"
#include "import/nsight/nvtx_ranges.h"
#include "import/nsight/nvtx_text.h"
#include "import/sqlite/row_times.h"
#include "model/copy_name.h"

namespace firelane::importer {

namespace {

constexpr std::string_view kKernelTable = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr std::string_view kCopyTable = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr std::string_view kSetTable = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr std::string_view kSyncTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr std::string_view kCallTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr std::string_view kGraphTable = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr std::string_view kEventTable = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";

int32_t small_number(int64_t number) { return number < 0 || number > INT32_MAX ? -1 : static_cast<int32_t>(number); }

class NsightReader {
 public:
  NsightReader(SqlDatabase& database, const ReadRequest& request) : database_(database), request_(request) {}

  Result<RawTrace> run() {
    expect_rows();
    read_strings();
    read_processes();
    read_kernels();
    read_graph_launches();
    read_copies();
    read_sets();
    read_syncs();
    read_calls();
    NvtxRanges ranges(
        database_, pool_, part_, [this](int64_t thread) { return thread_lane(thread); },
        [this](int64_t id) { return string(id); }, [this](int64_t pid, int64_t id) { return joined(pid, id); });
    rows_ += ranges.read();
    read_libraries();
    rows_ += read_gpu_metrics(database_, pool_, part_);
    read_facts(database_, schema_, raw_.info, losses_);
    if (rows_ == 0 && part_.host_slices.empty() && part_.device_slices.empty()) {
      return Error{request_.name +
                   ": an Nsight Systems export without events; record with nsys profile --trace=cuda,nvtx and export "
                   "again"};
    }
    part_.event_count = rows_;
    raw_.info.format = "Nsight Systems SQLite, schema " + (schema_.empty() ? "unknown" : schema_);
    raw_.info.origin = Origin::kNsight;
    raw_.info.accelerator = Accelerator::kCuda;
    raw_.info.content_bytes = database_.bytes();
    return std::move(raw_);
  }

 private:
  using Columns = std::vector<std::string_view>;

  // Room for as many rows as the file may hold; pages that are not touched cost nothing.
  void expect_rows() {
    constexpr uint64_t kFewestBytes = 40;  // of a row
    const auto rows = static_cast<size_t>(std::min<uint64_t>(database_.bytes() / kFewestBytes, uint64_t{1} << 32));
    part_.host_slices.reserve(rows);
    part_.op_details.reserve(rows);
    part_.call_details.reserve(rows);
    part_.device_slices.reserve(rows);
    part_.kernel_details.reserve(rows);
  }

  // ---- what rows refer to

  void read_strings() {
    database_.scan("StringIds", {"id", "value"}, losses_, [&](const SqlRow& row) {
      const int64_t id = row.integer(0);
      if (id == kNoNumber) return;
      const StringId text = pool_.strings.intern(row.text(1));
      // Ids count from 0, but nothing keeps a file to that.
      if (id == static_cast<int64_t>(small_strings_.size())) {
        small_strings_.push_back(text);
      } else if (id >= 0 && id < static_cast<int64_t>(small_strings_.size())) {
        small_strings_[static_cast<size_t>(id)] = text;
      } else {
        strings_[id] = text;
      }
    });
  }

  StringId string(int64_t id) {
    if (id == kNoNumber) return kNoString;
    if (id >= 0 && id < static_cast<int64_t>(small_strings_.size())) return small_strings_[static_cast<size_t>(id)];
    const auto found = strings_.find(id);
    if (found != strings_.end()) return found->second;
    ++losses_[Stat::kNameMissing];
    return pool_.strings.intern("string " + std::to_string(id));
  }

  void read_processes() {
    for (const char* const table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
      if (schema_.empty()) schema_ = database_.look_up(table, "name", "EXPORT_SCHEMA_VERSION", "value");
    }
    if (database_.has_table("PROCESSES")) {
      database_.scan("PROCESSES", {"globalPid", "name"}, losses_, [&](const SqlRow& row) {
        process_names_[pid_of(row.integer(0))] = pool_.strings.intern(row.text(1));
      });
    }
    if (database_.has_table("ThreadNames")) {
      database_.scan("ThreadNames", {"globalTid", "nameId"}, losses_, [&](const SqlRow& row) {
        const int64_t thread = row.integer(0);
        thread_names_[{pid_of(thread), tid_of(thread)}] = string(row.integer(1));
      });
    }
  }

  // Correlation ids count from 0 in each process.
  int64_t joined(int64_t pid, int64_t id) {
    if (id == kNoNumber || id < 0 || id > UINT32_MAX) return kNoNumber;
    if (pid != last_pid_) {
      last_index_ = process_index_.try_emplace(pid, static_cast<int64_t>(process_index_.size())).first->second;
      last_pid_ = pid;
    }
    return last_index_ << 32 | id;
  }

  LaneId thread_lane(int64_t global_tid) {
    if (global_tid != last_thread_) {
      last_thread_lane_ = find_thread_lane(global_tid);
      last_thread_ = global_tid;
    }
    return last_thread_lane_;
  }

  LaneId find_thread_lane(int64_t global_tid) {
    const int64_t pid = pid_of(global_tid);
    const int64_t tid = tid_of(global_tid);
    const auto [at, added] = thread_lanes_.try_emplace({pid, tid}, LaneId{});
    if (!added) return at->second;
    at->second = pool_.lane({.number = pid}, {.number = tid});
    if (const auto name = process_names_.find(pid); name != process_names_.end())
      part_.lane_names.push_back({.lane = at->second, .what = LaneNameKind::kProcessName, .text = name->second});
    if (const auto name = thread_names_.find({pid, tid}); name != thread_names_.end())
      part_.lane_names.push_back({.lane = at->second, .what = LaneNameKind::kThreadName, .text = name->second});
    return at->second;
  }

  // A stream's lane; streams of several processes on one device have the same numbers.
  LaneId stream_lane(int64_t device, int64_t stream, int64_t pid) {
    if (std::tuple(device, stream, pid) != last_stream_) {
      last_stream_lane_ = find_stream_lane(device, stream, pid);
      last_stream_ = {device, stream, pid};
    }
    return last_stream_lane_;
  }

  LaneId find_stream_lane(int64_t device, int64_t stream, int64_t pid) {
    const auto [at, added] = stream_lanes_.try_emplace({device, stream, pid}, LaneId{});
    if (!added) return at->second;
    const auto [owner, is_first] = stream_owner_.try_emplace({device, stream}, pid);
    if (owner->second == pid) {
      at->second = pool_.lane({.number = device}, {.number = stream});
    } else {
      at->second =
          pool_.lane({.number = device}, pool_.text_id(std::to_string(stream) + " of process " + std::to_string(pid)));
    }
    return at->second;
  }

  // ---- device work

  // Columns that device work begins with.
  static constexpr int kStart = 0, kEnd = 1, kDevice = 2, kContext = 3, kStream = 4, kCorrelation = 5, kPid = 6,
                       kNode = 7, kOwn = 8;
  static Columns device_columns(std::initializer_list<std::string_view> more) {
    Columns columns = {"start",    "end",           "deviceId",  "contextId",
                       "streamId", "correlationId", "globalPid", "graphNodeId"};
    columns.insert(columns.end(), more);
    return columns;
  }

  struct Place {
    int64_t pid = 0;
    int64_t device = kNoNumber;
  };

  // Nothing, and counted, when the row has no place in time.
  std::optional<Place> read_place(const SqlRow& row, RawDeviceSlice& out) {
    ++rows_;
    if (!read_times(row, kStart, kEnd, losses_, out.start_ns, out.duration_ns)) return std::nullopt;
    const int64_t pid = pid_of(row.integer(kPid));
    const int64_t device = row.integer(kDevice);
    const int64_t stream = row.integer(kStream);
    out.device = small_number(device);
    out.stream = stream;
    out.correlation = joined(pid, row.integer(kCorrelation));
    out.lane = stream_lane(device == kNoNumber ? 0 : device, stream == kNoNumber ? 0 : stream, pid);
    return Place{pid, device};
  }

  // Of work whose place was read; `device` may be too large for a slice.
  void remember_context(const Place& place, int64_t context) {
    if (place.device == kNoNumber || std::tuple(place.pid, context, place.device) == last_context_) return;
    last_context_ = {place.pid, context, place.device};
    device_of_context_[{place.pid, context}] = place.device;
  }

  void read_kernels() {
    const StringId category = pool_.strings.intern("kernel");
    database_.scan(
        kKernelTable,
        device_columns({"demangledName", "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
                        "registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "graphId"}),
        losses_, [&](const SqlRow& row) {
          RawDeviceSlice slice{.category = category, .kind = DeviceKind::kKernel};
          const std::optional<Place> place = read_place(row, slice);
          if (!place) return;
          const int64_t context = row.integer(kContext);
          remember_context(*place, context);
          const int64_t name = row.integer(kOwn);
          slice.name = string(name != kNoNumber ? name : row.integer(kOwn + 1));
          const int64_t fixed = row.integer(kOwn + 9);
          const int64_t dynamic = row.integer(kOwn + 10);
          const bool has_shared = fixed >= 0 && dynamic >= 0 && fixed < INT32_MAX && dynamic < INT32_MAX;
          part_.kernel_details.push_back({.shared_memory_bytes = has_shared ? fixed + dynamic : kNoNumber,
                                          .context = context,
                                          .graph_id = row.integer(kOwn + 11),
                                          .graph_node_id = row.integer(kNode),
                                          .grid_x = small_number(row.integer(kOwn + 2)),
                                          .grid_y = small_number(row.integer(kOwn + 3)),
                                          .grid_z = small_number(row.integer(kOwn + 4)),
                                          .block_x = small_number(row.integer(kOwn + 5)),
                                          .block_y = small_number(row.integer(kOwn + 6)),
                                          .block_z = small_number(row.integer(kOwn + 7)),
                                          .registers = small_number(row.integer(kOwn + 8))});
          slice.detail = static_cast<Row>(part_.kernel_details.size() - 1);
          part_.device_slices.push_back(slice);
        });
  }

  // --cuda-graph-trace=graph: a graph is one piece of work, its kernels are not told apart.
  void read_graph_launches() {
    if (!database_.has_table(kGraphTable)) return;
    const StringId category = pool_.strings.intern("cuda_graph");
    database_.scan(kGraphTable, device_columns({"graphId"}), losses_, [&](const SqlRow& row) {
      RawDeviceSlice slice{.category = category, .kind = DeviceKind::kKernel};
      if (!read_place(row, slice)) return;
      const int64_t graph = row.integer(kOwn);
      slice.name = pool_.strings.intern("CUDA graph " + (graph == kNoNumber ? "" : std::to_string(graph)));
      part_.kernel_details.push_back({.context = row.integer(kContext), .graph_id = graph});
      slice.detail = static_cast<Row>(part_.kernel_details.size() - 1);
      part_.device_slices.push_back(slice);
    });
  }

  // CUPTI's numbers begin with "unknown", those of nsys with the first kind.
  static MemoryKind memory_kind(int64_t kind) {
    return kind >= 0 && kind < static_cast<int64_t>(std::size(kMemoryKindWords)) - 1 ? static_cast<MemoryKind>(kind + 1)
                                                                                     : MemoryKind::kUnknown;
  }
  static CopyDirection copy_direction(int64_t kind) {
    if (kind == 11) return CopyDirection::kHtoD;  // managed memory
    if (kind == 12) return CopyDirection::kDtoH;
    if (kind == 13) return CopyDirection::kDtoD;
    return kind > 0 && kind < static_cast<int64_t>(std::size(kCopyDirectionWords)) ? static_cast<CopyDirection>(kind)
                                                                                   : CopyDirection::kUnknown;
  }

  void read_copies() {
    const StringId category = pool_.strings.intern("gpu_memcpy");
    database_.scan(
        kCopyTable, device_columns({"bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId"}), losses_,
        [&](const SqlRow& row) {
          RawDeviceSlice slice{.category = category, .kind = DeviceKind::kCopy};
          const std::optional<Place> place = read_place(row, slice);
          if (!place) return;
          remember_context(*place, row.integer(kContext));
          RawCopy copy{.bytes = row.integer(kOwn),
                       .context = row.integer(kContext),
                       .graph_node_id = row.integer(kNode),
                       .source_device = row.integer(kOwn + 4),
                       .target_device = row.integer(kOwn + 5),
                       .direction = copy_direction(row.integer(kOwn + 1)),
                       .source_memory = memory_kind(row.integer(kOwn + 2)),
                       .target_memory = memory_kind(row.integer(kOwn + 3))};
          if (slice.duration_ns > 0 && copy.bytes > 0)
            copy.bandwidth_gb_s =
                static_cast<float>(static_cast<double>(copy.bytes) / static_cast<double>(slice.duration_ns));
          slice.name = pool_.strings.intern(copy_name({copy.direction, copy.source_memory, copy.target_memory}));
          part_.copy_details.push_back(copy);
          slice.detail = static_cast<Row>(part_.copy_details.size() - 1);
          part_.device_slices.push_back(slice);
        });
  }

  void read_sets() {
    const StringId category = pool_.strings.intern("gpu_memset");
    database_.scan(kSetTable, device_columns({"bytes", "memKind"}), losses_, [&](const SqlRow& row) {
      RawDeviceSlice slice{.category = category, .kind = DeviceKind::kSet};
      const std::optional<Place> place = read_place(row, slice);
      if (!place) return;
      remember_context(*place, row.integer(kContext));
      const MemoryKind memory = memory_kind(row.integer(kOwn + 1));
      slice.name = pool_.strings.intern(memset_name(memory));
      part_.copy_details.push_back({.bytes = row.integer(kOwn),
                                    .context = row.integer(kContext),
                                    .graph_node_id = row.integer(kNode),
                                    .target_memory = memory});
      slice.detail = static_cast<Row>(part_.copy_details.size() - 1);
      part_.device_slices.push_back(slice);
    });
  }

  void read_syncs() {
    static constexpr std::string_view kNames[] = {"Synchronization", "Event Sync", "Stream Wait Event", "Stream Sync",
                                                  "Context Sync"};
    const StringId category = pool_.strings.intern("cuda_sync");
    // Which event was recorded where: what a stream waits for.
    std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>>
        recorded;  // (pid, sync id) -> stream, correlation
    if (database_.has_table(kEventTable)) {
      database_.scan(kEventTable, {"globalPid", "eventSyncId", "streamId", "correlationId"}, losses_,
                     [&](const SqlRow& row) {
                       ++rows_;
                       const int64_t pid = pid_of(row.integer(0));
                       if (!row.is_null(1))
                         recorded[{pid, row.integer(1)}] = {row.integer(2), joined(pid, row.integer(3))};
                     });
    }
    database_.scan(kSyncTable, device_columns({"syncType", "eventId", "eventSyncId"}), losses_, [&](const SqlRow& row) {
      RawDeviceSlice slice{.category = category, .kind = DeviceKind::kSync};
      if (!read_place(row, slice)) return;
      // deviceId is 0 for all devices here; the context tells.
      const int64_t pid = pid_of(row.integer(kPid));
      const auto device = device_of_context_.find({pid, row.integer(kContext)});
      if (device != device_of_context_.end() && device->second != slice.device) {
        slice.device = small_number(device->second);
        slice.lane = stream_lane(device->second, slice.stream == kNoNumber ? 0 : slice.stream, pid);
      }
      const int64_t type = row.integer(kOwn);
      slice.name = pool_.strings.intern(kNames[type >= 0 && type <= 4 ? static_cast<size_t>(type) : 0]);
      RawSync sync{.wait_on_event = row.integer(kOwn + 1), .context = row.integer(kContext)};
      const auto event = recorded.find({pid, row.integer(kOwn + 2)});
      if (event != recorded.end()) {
        sync.wait_on_stream = event->second.first;
        sync.wait_on_correlation = event->second.second;
      }
      part_.sync_details.push_back(sync);
      slice.detail = static_cast<Row>(part_.sync_details.size() - 1);
      part_.device_slices.push_back(slice);
    });
  }

  // ---- the host

  void read_calls() {
    const StringId runtime = pool_.strings.intern("cuda_runtime");
    const StringId driver = pool_.strings.intern("cuda_driver");
    std::unordered_map<int64_t, StringId> names;  // without their versions
    for (const std::string_view table : {kCallTable, std::string_view("CUPTI_ACTIVITY_KIND_DRIVER")}) {
      if (table != kCallTable && !database_.has_table(table)) continue;
      database_.scan(table, {"start", "end", "globalTid", "correlationId", "nameId"}, losses_, [&](const SqlRow& row) {
        ++rows_;
        RawHostSlice slice;
        if (!read_times(row, 0, 1, losses_, slice.start_ns, slice.duration_ns)) return;
        const int64_t thread = row.integer(2);
        const int64_t id = row.integer(4);
        const auto [name, added] = names.try_emplace(id, kNoString);
        if (added) name->second = pool_.strings.intern(without_version(pool_.strings.view(string(id))));
        slice.name = name->second;
        const std::string_view text = pool_.strings.view(slice.name);
        const bool is_driver = text.starts_with("cu") && !text.starts_with("cuda");
        slice.kind = is_driver ? HostKind::kDriver : HostKind::kRuntime;
        slice.category = is_driver ? driver : runtime;
        slice.lane = thread_lane(thread);
        part_.call_details.push_back({.correlation = joined(pid_of(thread), row.integer(3))});
        slice.detail = static_cast<Row>(part_.call_details.size() - 1);
        part_.host_slices.push_back(slice);
      });
    }
  }

  // Calls of libraries and of the operating system, and what the profiler cost.
  void read_libraries() {
    struct Library {
      std::string_view table, category;
      HostKind kind;
    };
    for (const Library& library :
         {Library{"CUDNN_EVENTS", "cudnn", HostKind::kOther}, Library{"CUBLAS_EVENTS", "cublas", HostKind::kOther},
          Library{"OSRT_API", "osrt", HostKind::kOther},
          Library{"CUPTI_ACTIVITY_KIND_OVERHEAD", "overhead", HostKind::kOverhead},
          Library{"PROFILER_OVERHEAD", "overhead", HostKind::kOverhead}}) {
      if (!database_.has_table(library.table)) continue;
      const StringId category = pool_.strings.intern(library.category);
      database_.scan(library.table, {"start", "end", "globalTid", "nameId"}, losses_, [&](const SqlRow& row) {
        ++rows_;
        RawHostSlice slice{.category = category, .kind = library.kind};
        if (!read_times(row, 0, 1, losses_, slice.start_ns, slice.duration_ns)) return;
        slice.name = string(row.integer(3));
        const int64_t thread = row.integer(2);
        // The profiler's own work overlaps the call that waited for it.
        slice.lane = library.kind == HostKind::kOverhead ? pool_.lane({.number = -1}, {.number = tid_of(thread)})
                                                         : thread_lane(thread);
        part_.host_slices.push_back(slice);
      });
    }
  }

  SqlDatabase& database_;
  const ReadRequest& request_;
  RawTrace raw_;
  RawPool& pool_ = raw_.pools.emplace_back();
  RawPart& part_ = raw_.parts.emplace_back();
  LossCounts& losses_ = part_.losses;
  std::string schema_;
  uint64_t rows_ = 0;
  std::vector<StringId> small_strings_;            // of the ids from 0 on
  std::unordered_map<int64_t, StringId> strings_;  // of all others
  std::map<int64_t, StringId> process_names_;
  std::map<std::pair<int64_t, int64_t>, StringId> thread_names_;
  std::map<int64_t, int64_t> process_index_;
  // Most rows are of the process, the thread, the stream and the context of the row before.
  int64_t last_pid_ = INT64_MIN;
  int64_t last_index_ = 0;
  int64_t last_thread_ = INT64_MIN;
  LaneId last_thread_lane_{};
  std::tuple<int64_t, int64_t, int64_t> last_stream_{INT64_MIN, 0, 0};
  LaneId last_stream_lane_{};
  std::tuple<int64_t, int64_t, int64_t> last_context_{INT64_MIN, 0, 0};
  std::map<std::pair<int64_t, int64_t>, LaneId> thread_lanes_;
  std::map<std::tuple<int64_t, int64_t, int64_t>, LaneId> stream_lanes_;
  std::map<std::pair<int64_t, int64_t>, int64_t> stream_owner_;
  std::map<std::pair<int64_t, int64_t>, int64_t> device_of_context_;
};

}  // namespace

bool is_nsight(const SqlDatabase& database) {
  return database.has_table("META_DATA_EXPORT") || database.has_table("EXPORT_META_DATA") ||
         (database.has_table("StringIds") &&
          (database.has_table(kKernelTable) || database.has_table(kCallTable) || database.has_table("NVTX_EVENTS")));
}

Result<RawTrace> read_nsight(SqlDatabase& database, const ReadRequest& request) {
  return NsightReader(database, request).run();
}

}  // namespace firelane::importer
