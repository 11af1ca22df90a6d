#include "import/rocprof/read_rocpd.h"

#include <unordered_map>

#include "import/rocprof/rocprof_rows.h"

namespace firelane::importer {

namespace {

constexpr std::string_view kDispatches = "rocpd_kernel_dispatch";
constexpr std::string_view kRegions = "rocpd_region";

// "rocpd_string" in "rocpd_string_00012345_...": the name, and then nothing but the id of the run.
std::string table_named(const SqlDatabase& database, std::string_view name, std::string_view suffix) {
  const std::string table = std::string(name) + std::string(suffix);
  return database.has_table(table) ? table : "";
}

class RocpdReader {
 public:
  RocpdReader(SqlDatabase& database, const ReadRequest& request) : database_(database), request_(request) {}

  Result<RawTrace> run() {
    // A file may hold several runs: one for each process of a job.
    for (const std::string& table : database_.tables_with_prefix(kDispatches)) {
      suffix_ = table.substr(kDispatches.size());
      read_names();
      read_dispatches();
      read_copies();
      read_regions();
      ++run_;
    }
    if (rows_.empty())
      return Error{request_.name + ": a rocpd database without events; record with rocprofv3 --sys-trace"};
    describe_rocprof(raw_.info, "rocpd");
    raw_.info.content_bytes = database_.bytes();
    return std::move(raw_);
  }

 private:
  using Ids = std::unordered_map<int64_t, int64_t>;
  struct Track {
    int64_t pid = kNoNumber, tid = kNoNumber, agent = kNoNumber, queue = kNoNumber, stream = kNoNumber;
  };

  template <typename Visit>
  void scan(std::string_view name, const std::vector<std::string_view>& columns, const Visit& visit) {
    database_.scan(std::string(name) + suffix_, columns, rows_.losses(), visit);
  }
  bool has_column(std::string_view table, std::string_view column) const {
    return database_.has_column(std::string(table) + suffix_, column);
  }

  void read_names() {
    strings_.clear();
    kernels_.clear();
    devices_.clear();
    processes_.clear();
    threads_.clear();
    events_.clear();
    tracks_.clear();
    times_.clear();
    scan("rocpd_string", {"id", "string"},
         [&](const SqlRow& row) { strings_[row.integer(0)] = std::string(row.text(1)); });
    scan("rocpd_info_kernel_symbol", {"id", "display_name", "kernel_name", "arch_vgpr_count"}, [&](const SqlRow& row) {
      const std::string_view shown = row.text(1);
      kernels_[row.integer(0)] = {std::string(shown.empty() ? row.text(2) : shown), row.integer(3)};
    });
    scan("rocpd_info_agent", {"id", "type", "type_index", "product_name", "name"}, [&](const SqlRow& row) {
      if (row.text(1) != "GPU") return;
      const int64_t index = row.integer(2) == kNoNumber ? static_cast<int64_t>(devices_.size()) : row.integer(2);
      devices_[row.integer(0)] = index;
      DeviceProperties device;
      device.id = index;
      device.name = row.text(3).empty() ? row.text(4) : row.text(3);
      device.warp_size = 64;
      if (run_ == 0 && raw_.info.devices.size() < 1024) raw_.info.devices.push_back(std::move(device));
    });
    scan("rocpd_info_process", {"id", "pid"}, [&](const SqlRow& row) { processes_[row.integer(0)] = row.integer(1); });
    scan("rocpd_info_thread", {"id", "tid"}, [&](const SqlRow& row) { threads_[row.integer(0)] = row.integer(1); });
    // Categories are strings in older files, a table of their own in newer ones.
    categories_.clear();
    if (!table_named(database_, "rocpd_info_category", suffix_).empty()) {
      scan("rocpd_info_category", {"id", "name"},
           [&](const SqlRow& row) { categories_[row.integer(0)] = std::string(row.text(1)); });
    }
    scan("rocpd_event", {"id", "category_id", "stack_id", "correlation_id"}, [&](const SqlRow& row) {
      const int64_t correlation = row.integer(3) > 0 ? row.integer(3) : row.integer(2);
      events_[row.integer(0)] = {row.integer(1), correlation};
    });
    if (!has_column(kDispatches, "start")) {
      scan("rocpd_timestamp", {"id", "value"}, [&](const SqlRow& row) { times_[row.integer(0)] = row.integer(1); });
    }
    if (has_column(kDispatches, "track_id")) {
      scan("rocpd_track", {"id", "pid", "tid", "agent_id", "queue_id", "stream_id"}, [&](const SqlRow& row) {
        tracks_[row.integer(0)] = {row.integer(1), row.integer(2), row.integer(3), row.integer(4), row.integer(5)};
      });
    }
  }

  // ---- where and when: in the row itself, or by way of a track and timestamps

  struct Place {
    int64_t start_ns = kNoNumber, end_ns = kNoNumber;
    Track track;
    int64_t category = kNoNumber, correlation = kNoNumber;
  };
  static constexpr int kOwn = 11;  // columns before those of the table itself

  std::vector<std::string_view> columns_of(std::string_view table, std::initializer_list<std::string_view> more) const {
    const bool is_inline = has_column(table, "start");
    const bool has_track = has_column(table, "track_id");
    // Of the two ways each file has one: the other is not missing, and not asked for.
    std::vector<std::string_view> columns = {is_inline ? "start" : "start_id", is_inline ? "end" : "end_id",
                                             "event_id"};
    const std::string_view id = "id";
    columns.push_back(has_track ? "track_id" : id);
    for (const std::string_view name : {"pid", "tid", "agent_id", "queue_id", "stream_id"})
      columns.push_back(has_column(table, name) ? name : id);
    columns.push_back(id);
    columns.push_back(id);
    columns.insert(columns.end(), more);
    return columns;
  }

  Place place_of(const SqlRow& row, std::string_view table) {
    Place out{.start_ns = row.integer(0), .end_ns = row.integer(1)};
    if (!has_column(table, "start")) {
      out.start_ns = find(times_, out.start_ns);
      out.end_ns = find(times_, out.end_ns);
    }
    if (has_column(table, "track_id")) {
      const auto track = tracks_.find(row.integer(3));
      if (track != tracks_.end()) out.track = track->second;
    } else {
      out.track = {row.integer(4), row.integer(5), kNoNumber, kNoNumber, kNoNumber};
      if (has_column(table, "agent_id")) out.track.agent = row.integer(6);
      if (has_column(table, "queue_id")) out.track.queue = row.integer(7);
      if (has_column(table, "stream_id")) out.track.stream = row.integer(8);
    }
    if (const auto event = events_.find(row.integer(2)); event != events_.end()) {
      out.category = event->second.first;
      out.correlation = joined(event->second.second);
    }
    return out;
  }

  static int64_t find(const Ids& ids, int64_t id) {
    const auto found = ids.find(id);
    return found == ids.end() ? kNoNumber : found->second;
  }
  // Each run counts from 0.
  int64_t joined(int64_t id) const { return id <= 0 || id >= int64_t{1} << 40 ? kNoNumber : int64_t{run_} << 40 | id; }
  int64_t device_of(int64_t agent) const {
    const int64_t device = find(devices_, agent);
    return device == kNoNumber ? 0 : device;
  }
  std::string_view string(int64_t id) {
    const auto found = strings_.find(id);
    if (found != strings_.end()) return found->second;
    ++rows_.losses()[Stat::kNameMissing];
    return "?";
  }

  void read_dispatches() {
    scan(kDispatches,
         columns_of(kDispatches, {"kernel_id", "grid_size_x", "grid_size_y", "grid_size_z", "workgroup_size_x",
                                  "workgroup_size_y", "workgroup_size_z", "group_segment_size"}),
         [&](const SqlRow& row) {
           const Place place = place_of(row, kDispatches);
           const auto kernel = kernels_.find(row.integer(kOwn));
           RocprofDispatch out{.start_ns = place.start_ns,
                               .end_ns = place.end_ns,
                               .device = device_of(place.track.agent),
                               .stream = place.track.stream,
                               .queue = place.track.queue,
                               .correlation = place.correlation,
                               .group_segment_bytes = row.integer(kOwn + 7)};
           if (kernel != kernels_.end()) {
             out.kernel = kernel->second.first;
             out.registers = kernel->second.second;
           }
           for (int i = 0; i < 3; ++i) {
             out.grid[i] = row.integer(kOwn + 1 + i);
             out.workgroup[i] = row.integer(kOwn + 4 + i);
           }
           rows_.add(out);
         });
  }

  void read_copies() {
    constexpr std::string_view kTable = "rocpd_memory_copy";
    scan(kTable, columns_of(kTable, {"name_id", "size", "dst_agent_id", "src_agent_id"}), [&](const SqlRow& row) {
      const Place place = place_of(row, kTable);
      const int64_t to = find(devices_, row.integer(kOwn + 2));
      const int64_t from = find(devices_, row.integer(kOwn + 3));
      rows_.add(RocprofCopy{.start_ns = place.start_ns,
                            .end_ns = place.end_ns,
                            .device = to != kNoNumber     ? to
                                      : from != kNoNumber ? from
                                                          : 0,
                            .stream = place.track.stream,
                            .correlation = place.correlation,
                            .bytes = row.integer(kOwn + 1),
                            .direction = string(row.integer(kOwn))});
    });
  }

  void read_regions() {
    scan(kRegions, columns_of(kRegions, {"name_id"}), [&](const SqlRow& row) {
      const Place place = place_of(row, kRegions);
      const auto category = categories_.find(place.category);
      const std::string_view text = category != categories_.end() ? std::string_view(category->second)
                                    : categories_.empty() && strings_.contains(place.category)
                                        ? string(place.category)
                                        : std::string_view("region");
      const int64_t pid = find(processes_, place.track.pid);
      const int64_t tid = find(threads_, place.track.tid);
      rows_.add(RocprofRegion{.start_ns = place.start_ns,
                              .end_ns = place.end_ns,
                              .pid = pid == kNoNumber ? place.track.pid : pid,
                              .tid = tid == kNoNumber ? place.track.tid : tid,
                              .correlation = place.correlation,
                              .category = text,
                              .name = string(row.integer(kOwn))});
    });
  }

  SqlDatabase& database_;
  const ReadRequest& request_;
  RawTrace raw_;
  RocprofRows rows_{raw_};
  std::string suffix_;  // of the run that is being read
  int32_t run_ = 0;
  std::unordered_map<int64_t, std::string> strings_;
  std::unordered_map<int64_t, std::string> categories_;
  std::unordered_map<int64_t, std::pair<std::string, int64_t>> kernels_;  // name, registers
  std::unordered_map<int64_t, std::pair<int64_t, int64_t>> events_;       // category, correlation
  std::unordered_map<int64_t, Track> tracks_;
  Ids devices_, processes_, threads_, times_;
};

}  // namespace

bool is_rocpd(const SqlDatabase& database) {
  return !database.tables_with_prefix(kDispatches).empty() && !database.tables_with_prefix("rocpd_string").empty();
}

Result<RawTrace> read_rocpd(SqlDatabase& database, const ReadRequest& request) {
  return RocpdReader(database, request).run();
}

}  // namespace firelane::importer
