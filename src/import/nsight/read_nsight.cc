#include "import/nsight/read_nsight.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "base/parallel.h"
#include "import/nsight/facts.h"
#include "import/nsight/gpu_metrics.h"
#include "import/nsight/names.h"
#include "import/nsight/nvtx_ranges.h"
#include "import/nsight/nvtx_text.h"
#include "import/sqlite/row_times.h"
#include "model/copy_name.h"

namespace firelane::importer {

namespace {

constexpr std::string_view kCopyTable = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr std::string_view kSetTable = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr std::string_view kSyncTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr std::string_view kGraphTable = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr std::string_view kEventTable = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";

int32_t small_number(int64_t number) { return number < 0 || number > INT32_MAX ? -1 : static_cast<int32_t>(number); }

class NsightReader {
 public:
  NsightReader(SqlDatabase& database, const ReadRequest& request) : database_(database), request_(request) {}

  Result<RawTrace> run() {
    for (const char* const table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
      if (schema_.empty()) schema_ = database_.look_up(table, "name", "EXPORT_SCHEMA_VERSION", "value");
    }
    expect_rows();
    names_.read();
    // Calls and ranges are half of a large file: another thread reads them over a connection of its own.
    constexpr uint64_t kLarge = uint64_t{1} << 20;
    std::unique_ptr<SqlDatabase> connection;
    if (request_.threads > 1 && database_.bytes() >= kLarge && names_.are_processes_known()) {
      connection = database_.connect_again();
    }
    std::optional<NsightReader> host;
    if (connection != nullptr) host.emplace(*connection, request_);
    run_both(
        host.has_value(),
        [&] {
          if (host) host->read_only_host();
        },
        [&] { read_device(); });
    if (host) {
      take(*host);
    } else {
      read_host();
    }
    rows_ += read_gpu_metrics(database_, pool_, part_);
    read_facts(database_, schema_, raw_.info, losses_);
    if (rows_ == 0 &&
        std::none_of(raw_.parts.begin(), raw_.parts.end(), [](const RawPart& part) { return part.has_slices(); })) {
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
    part_.plain_ops.reserve(rows);
    part_.call_details.reserve(rows);
    part_.device_slices.reserve(rows);
    part_.kernel_order.reserve(rows);
  }

  void read_device() {
    read_kernels();
    read_graph_launches();
    read_copies();
    read_sets();
    read_syncs();
  }

  void read_host() {
    read_calls();
    NvtxRanges ranges(
        database_, pool_, part_, [this](int64_t thread) { return names_.thread_lane(thread); },
        [this](int64_t id) { return names_.string(id); },
        [this](int64_t pid, int64_t id) { return names_.joined(pid, id); });
    rows_ += ranges.read();
    read_libraries();
  }

  // What names are missing is counted by the other reader.
  void read_only_host() {
    expect_rows();
    names_.read();
    losses_ = {};
    read_host();
  }

  void take(NsightReader& other) {
    rows_ += other.rows_;
    raw_.pools.push_back(std::move(other.pool_));
    raw_.parts.push_back(std::move(other.part_));
    raw_.parts.back().pool = static_cast<uint32_t>(raw_.pools.size() - 1);
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
    out.correlation = names_.joined(pid, row.integer(kCorrelation));
    out.lane = names_.stream_lane(device == kNoNumber ? 0 : device, stream == kNoNumber ? 0 : stream, pid);
    return Place{pid, device};
  }

  // For work whose place was read; `device` may be too large for a slice.
  void remember_context(const Place& place, int64_t context) {
    if (place.device == kNoNumber || std::tuple(place.pid, context, place.device) == last_context_) return;
    last_context_ = {place.pid, context, place.device};
    device_of_context_[{place.pid, context}] = place.device;
  }

  void read_kernels() {
    const StringId category = pool_.strings.intern("kernel");
    database_.scan(
        kNsightKernels,
        device_columns({"demangledName", "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
                        "registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "graphId"}),
        losses_, [&](const SqlRow& row) {
          RawDeviceSlice slice{.category = category, .kind = DeviceKind::kKernel};
          const std::optional<Place> place = read_place(row, slice);
          if (!place) return;
          const int64_t context = row.integer(kContext);
          remember_context(*place, context);
          const int64_t name = row.integer(kOwn);
          slice.name = names_.string(name != kNoNumber ? name : row.integer(kOwn + 1));
          const int64_t fixed = row.integer(kOwn + 9);
          const int64_t dynamic = row.integer(kOwn + 10);
          const bool has_shared = fixed >= 0 && dynamic >= 0 && fixed < INT32_MAX && dynamic < INT32_MAX;
          slice.detail = add_kernel({.shared_memory_bytes = has_shared ? fixed + dynamic : kNoNumber,
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
          part_.device_slices.push_back(slice);
        });
  }

  // Launches of the same shape have their details in common: a program has few of these.
  Row add_kernel(const RawKernel& kernel) {
    uint64_t hash = 0;
    RawKernel::each_field(kernel, [&]<typename T>(auto, const T& value) {
      if constexpr (std::is_integral_v<T>) hash = mix_hash(hash, static_cast<uint64_t>(value));
    });
    const auto [at, added] = kernel_of_hash_.try_emplace(hash, static_cast<Row>(part_.kernel_details.size()));
    Row row = at->second;
    if (added || !is_same(part_.kernel_details[row], kernel)) {
      row = static_cast<Row>(part_.kernel_details.size());
      part_.kernel_details.push_back(kernel);
    }
    part_.kernel_order.push_back(row);
    return static_cast<Row>(part_.kernel_order.size() - 1);
  }

  static bool is_same(const RawKernel& a, const RawKernel& b) {
    return std::tuple(a.shared_memory_bytes, a.context, a.graph_id, a.graph_node_id, a.grid_x, a.grid_y, a.grid_z,
                      a.block_x, a.block_y, a.block_z, a.registers) ==
           std::tuple(b.shared_memory_bytes, b.context, b.graph_id, b.graph_node_id, b.grid_x, b.grid_y, b.grid_z,
                      b.block_x, b.block_y, b.block_z, b.registers);
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
      slice.detail = add_kernel({.context = row.integer(kContext), .graph_id = graph});
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
                         recorded[{pid, row.integer(1)}] = {row.integer(2), names_.joined(pid, row.integer(3))};
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
        slice.lane = names_.stream_lane(device->second, slice.stream == kNoNumber ? 0 : slice.stream, pid);
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
    for (const std::string_view table : {kNsightCalls, std::string_view("CUPTI_ACTIVITY_KIND_DRIVER")}) {
      if (table != kNsightCalls && !database_.has_table(table)) continue;
      database_.scan(table, {"start", "end", "globalTid", "correlationId", "nameId"}, losses_, [&](const SqlRow& row) {
        ++rows_;
        RawHostSlice slice;
        if (!read_times(row, 0, 1, losses_, slice.start_ns, slice.duration_ns)) return;
        const int64_t thread = row.integer(2);
        const int64_t id = row.integer(4);
        const auto [name, added] = names.try_emplace(id, kNoString);
        if (added) name->second = pool_.strings.intern(without_version(pool_.strings.view(names_.string(id))));
        slice.name = name->second;
        const std::string_view text = pool_.strings.view(slice.name);
        const bool is_driver = text.starts_with("cu") && !text.starts_with("cuda");
        slice.kind = is_driver ? HostKind::kDriver : HostKind::kRuntime;
        slice.category = is_driver ? driver : runtime;
        slice.lane = names_.thread_lane(thread);
        part_.call_details.push_back({.correlation = names_.joined(pid_of(thread), row.integer(3))});
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
        slice.name = names_.string(row.integer(3));
        const int64_t thread = row.integer(2);
        // The profiler's own work overlaps the call that waited for it.
        slice.lane = library.kind == HostKind::kOverhead ? pool_.lane({.number = -1}, {.number = tid_of(thread)})
                                                         : names_.thread_lane(thread);
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
  NsightNames names_{database_, pool_, part_};
  std::string schema_;
  uint64_t rows_ = 0;
  std::unordered_map<uint64_t, Row> kernel_of_hash_;
  std::tuple<int64_t, int64_t, int64_t> last_context_{INT64_MIN, 0, 0};
  std::map<std::pair<int64_t, int64_t>, int64_t> device_of_context_;
};

}  // namespace

bool is_nsight(const SqlDatabase& database) {
  return database.has_table("META_DATA_EXPORT") || database.has_table("EXPORT_META_DATA") ||
         (database.has_table("StringIds") && (database.has_table(kNsightKernels) || database.has_table(kNsightCalls) ||
                                              database.has_table("NVTX_EVENTS")));
}

Result<RawTrace> read_nsight(SqlDatabase& database, const ReadRequest& request) {
  return NsightReader(database, request).run();
}

}  // namespace firelane::importer
