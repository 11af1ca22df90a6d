#include "export/chrome.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <vector>

#include "describe/category.h"
#include "describe/kineto_args.h"
#include "describe/lane_name.h"
#include "describe/source_args.h"
#include "export/chrome_events.h"
#include "export/chrome_kineto.h"
#include "export/json_args.h"
#include "export/lane_tracks.h"
#include "model/gpu_counters.h"

namespace firelane::exporter {

namespace {

// Arrows that the trace did not number; Kineto's own ids are CUPTI's, of 32 bits.
constexpr int64_t kFirstMadeUpId = int64_t{1} << 40;

constexpr std::string_view kOpToWork = "async_npu";

enum class EntryKind : uint8_t { kHost, kDevice, kMemory, kInstant };

// One event to write, in the order of the source.
struct Entry {
  uint64_t source;
  Row row;
  EntryKind kind;
};

class ChromeExport {
 public:
  ChromeExport(const Model& model, ByteSink& sink, const ExportPlace& place)
      : model_(model),
        sink_(sink),
        place_(place),
        events_(model, sink, place_),
        kineto_(model, place.torch),
        has_overload_names_(model.find_metadata("capture_overload_names") != nullptr) {}

  Result<void> run() {
    write_header();
    FL_TRY_VOID(write_all());
    if (kineto_.is_wanted()) kineto_.write_window(events_);
    events_.out() += "\n]\n" + kineto_.file_pair(place_.file) + "}\n";
    events_.flush();
    return {};
  }

  // One of several traces: the file around them is another's.
  Result<void> add() {
    FL_TRY_VOID(write_all());
    events_.flush();
    return {};
  }

 private:
  Result<void> write_all() {
    find_arrows();
    write_lane_names();
    FL_TRY_VOID(write_events());
    FL_TRY_VOID(write_async_lanes());
    write_counters();
    write_other_flows();
    write_arrows_between_traces();
    return {};
  }

  // Which calls queued device work, and which backward ops each forward op has.
  void find_arrows() {
    launches_.resize(model_.host_slices.size());
    for (const Row launch : model_.device_slices.launch) {
      if (launch != kNoRow) launches_[launch] = true;
    }
    for (Row detail = 0; detail < model_.op_details.size(); ++detail) {
      const Row forward = model_.op_details.forward[detail];
      if (forward != kNoRow) backward_of_.emplace_back(forward, detail);
    }
    std::sort(backward_of_.begin(), backward_of_.end());
    for (Row row = 0; row < model_.device_slices.size(); ++row) {
      if (needs_op_arrow(row)) work_of_.emplace_back(model_.device_slices.op[row], row);
    }
    std::sort(work_of_.begin(), work_of_.end());
  }

  // Ascend's calls lie on other lanes than its operators, and no id joins the two.
  bool needs_op_arrow(Row row) const {
    return model_.info.accelerator == Accelerator::kNpu && model_.device_slices.op[row] != kNoRow &&
           model_.device_slices.external_id[row] == kNoNumber;
  }

  void write_header() {
    std::string& out = events_.out();
    out += '{';
    JsonPairs top(out);
    const auto missing = [&](std::string_view key) { return model_.find_metadata(key) == nullptr; };
    if (missing("schemaVersion")) top.number("schemaVersion", 1);
    for (const MetadataEntry& entry : model_.info.metadata) {
      if (entry.key != "traceEvents") top.json(entry.key, entry.json);
    }
    if (missing("deviceProperties")) top.json("deviceProperties", device_properties());
    if (missing("distributedInfo")) top.json("distributedInfo", distributed_info());
    if (missing("host_name")) top.text("host_name", model_.info.recorder.host_name);
    if (missing("firelane_source") && !describe::has_kineto_categories(model_)) top.json("firelane_source", source());
    if (missing("displayTimeUnit")) top.text("displayTimeUnit", "ms");
    if (missing("baseTimeNanoseconds") && model_.info.base_time_ns != 0) {
      top.number("baseTimeNanoseconds", model_.info.base_time_ns);
    }
    top.json("traceEvents", "[");
  }

  std::string device_properties() const {
    if (model_.info.devices.empty()) return kineto_.is_wanted() ? "[]" : "";
    std::string out = "[";
    for (const DeviceProperties& device : model_.info.devices) {
      out += out.size() > 1 ? ", {" : "{";
      JsonPairs pairs(out);
      pairs.number("id", device.id);
      pairs.text("name", device.name);
      pairs.number("totalGlobalMem", device.total_memory_bytes);
      pairs.number("computeMajor", device.compute_major);
      pairs.number("computeMinor", device.compute_minor);
      pairs.number("maxThreadsPerMultiprocessor", device.max_threads_per_multiprocessor);
      pairs.number("warpSize", device.warp_size);
      pairs.number("numSms", device.multiprocessors);
      pairs.number("regsPerMultiprocessor", device.registers_per_multiprocessor);
      pairs.number("sharedMemPerMultiprocessor", device.shared_memory_per_multiprocessor_bytes);
      out += '}';
    }
    return out + "]";
  }

  // For a trace that was not Kineto JSON: what a reader of the export would not see.
  std::string source() const {
    std::string out = "{";
    JsonPairs pairs(out);
    pairs.text("origin", name_of(model_.info.origin));
    pairs.text("accelerator", name_of(model_.info.accelerator));
    pairs.text("format", model_.info.format);
    if (model_.info.has_order_only) pairs.text("times", "order of calls");
    return out + "}";
  }

  std::string distributed_info() const {
    const DistributedInfo& info = model_.info.distributed;
    if (!info.present) return {};
    std::string out = "{";
    JsonPairs pairs(out);
    pairs.text("backend", info.backend);
    pairs.number("rank", info.rank);
    pairs.number("world_size", info.world_size);
    pairs.text("nccl_version", info.nccl_version);
    return out + "}";
  }

  void write_lane_names() {
    std::set<std::pair<int64_t, StringId>> seen;
    const Lanes& lanes = model_.lanes;
    for (uint32_t l = 0; l < lanes.size(); ++l) {
      const LaneId lane{l};
      const bool is_new = seen.emplace(lanes.pid[l].number, lanes.pid[l].text).second;
      if (is_new && !place_.is_alone()) {
        name_lane("process_name", lane, "name", place_.name + ": " + describe::process_name(model_, lane));
        sort_lane("process_sort_index", lane, place_.number * kLanesOfPlace + static_cast<int64_t>(seen.size()));
      } else if (is_new) {
        if (lanes.process_name[l] != kNoString) name_lane("process_name", lane, "name", lanes.process_name[l]);
        if (lanes.process_labels[l] != kNoString) name_lane("process_labels", lane, "labels", lanes.process_labels[l]);
        if (lanes.process_sort_index[l] != kNoNumber) {
          sort_lane("process_sort_index", lane, lanes.process_sort_index[l]);
        }
      }
      if (lanes.kind[l] == LaneKind::kAsync) continue;
      if (lanes.name[l] != kNoString) name_lane("thread_name", lane, "name", lanes.name[l]);
      if (lanes.sort_index[l] != kNoNumber) sort_lane("thread_sort_index", lane, lanes.sort_index[l]);
    }
  }

  void begin_lane_event(std::string_view what, LaneId lane) {
    events_.begin('M', "", what);
    events_.at(0);
    events_.lane(lane);
    events_.out() += ", \"args\": {";
  }
  void name_lane(std::string_view what, LaneId lane, std::string_view key, StringId text) {
    name_lane(what, lane, key, model_.text(text));
  }
  void name_lane(std::string_view what, LaneId lane, std::string_view key, std::string_view text) {
    begin_lane_event(what, lane);
    JsonPairs(events_.out()).text(key, text);
    events_.out() += '}';
    events_.end();
  }
  void sort_lane(std::string_view what, LaneId lane, int64_t index) {
    begin_lane_event(what, lane);
    JsonPairs(events_.out()).number("sort_index", index);
    events_.out() += '}';
    events_.end();
  }

  bool is_async(LaneId lane) const { return model_.lanes.kind[static_cast<size_t>(lane)] == LaneKind::kAsync; }

  std::vector<Entry> entries_in_source_order() const {
    std::vector<Entry> entries;
    const auto add = [&](EntryKind kind, const auto& table) {
      for (Row row = 0; row < table.size(); ++row) {
        if (kind == EntryKind::kHost && kineto_.is_left_out(row)) continue;
        if (!is_async(table.lane[row])) entries.push_back({table.source[row], row, kind});
      }
    };
    add(EntryKind::kHost, model_.host_slices);
    add(EntryKind::kDevice, model_.device_slices);
    if (!place_.without_memory) add(EntryKind::kMemory, model_.memory_events);
    add(EntryKind::kInstant, model_.instants);
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.source < b.source; });
    return entries;
  }

  Result<void> write_events() {
    const std::vector<Entry> entries = entries_in_source_order();
    size_t next = 0;
    if (model_.args != nullptr) {
      std::vector<uint64_t> sources;
      for (const Entry& entry : entries) {
        if (entry.source == kNoSource) break;
        sources.push_back(entry.source);
      }
      describe::SourceArgs reader;
      FL_TRY_VOID(model_.args->visit_events(sources, [&](size_t index, std::string_view json) {
        if (sink_.failed()) return;
        const auto args = reader.of(json);
        args ? write(entries[index], *args) : write_from_columns(entries[index]);
      }));
      next = sources.size();
    }
    for (; next < entries.size() && !sink_.failed(); ++next) write_from_columns(entries[next]);
    return {};
  }

  void write_from_columns(const Entry& entry) {
    own_args_ = "{";
    JsonArgs args(model_, own_args_, kineto_.has_plain_texts() ? ObjectTexts::kPlain : ObjectTexts::kAsTheyAre);
    switch (entry.kind) {
      case EntryKind::kHost: describe::visit_host_args(model_, entry.row, args); break;
      case EntryKind::kDevice: describe::visit_device_args(model_, entry.row, args); break;
      case EntryKind::kMemory: describe::visit_memory_args(model_, entry.row, args); break;
      case EntryKind::kInstant: break;
    }
    if (kineto_.is_wanted() && entry.kind == EntryKind::kHost) kineto_.add_host_args(entry.row, own_args_);
    if (kineto_.is_wanted() && entry.kind == EntryKind::kMemory) kineto_.add_memory_args(entry.row, own_args_);
    own_args_ += '}';
    write(entry, own_args_);
  }

  void add_args(std::string_view args) {
    if (args.size() <= 2) return;  // none, or {}
    events_.out() += ", \"args\": ";
    events_.out() += args;
  }

  void write(const Entry& entry, std::string_view args) {
    switch (entry.kind) {
      case EntryKind::kHost: return write_host(entry.row, args);
      case EntryKind::kDevice: return write_device(entry.row, args);
      case EntryKind::kMemory: return write_memory(entry.row, args);
      case EntryKind::kInstant: return write_instant(entry.row, args);
    }
  }

  template <typename Slices>
  void write_slice(const Slices& slices, Row row, std::string_view category, std::string_view args) {
    write_slice(slices.lane[row], {slices.start_ns[row], slices.duration_ns[row]}, category,
                model_.text(slices.name[row]), args);
  }

  void write_slice(LaneId lane, std::pair<int64_t, int64_t> start_and_duration_ns, std::string_view category,
                   std::string_view name, std::string_view args) {
    events_.begin('X', category, kineto_.written(name, written_));
    events_.lane(lane);
    events_.at(start_and_duration_ns.first);
    events_.lasting(start_and_duration_ns.first, start_and_duration_ns.second);
    add_args(args);
    events_.end();
  }

  void write_host(Row row, std::string_view args) {
    const HostSlices& host = model_.host_slices;
    const Row detail = has_overload_names_ && host.kind[row] == HostKind::kOp ? host.detail[row] : kNoRow;
    std::string_view name = kineto_.host_name(row);
    std::string with_overload;
    if (detail != kNoRow && model_.op_details.overload[detail] != kNoString)
      name = with_overload.append(name).append(".").append(model_.text(model_.op_details.overload[detail]));
    write_slice(host.lane[row], kineto_.host_times(row), describe::host_category(model_, row), name, args);
    auto served = std::lower_bound(work_of_.begin(), work_of_.end(), std::pair{row, Row{0}});
    for (; served != work_of_.end() && served->first == row; ++served)
      write_flow('s', kOpToWork, kOpToWork, served->second + 1, host.lane[row], host.start_ns[row]);
    if (launches_[row]) write_flow('s', "ac2g", "ac2g", launch_id(row), host.lane[row], host.start_ns[row]);
    const bool has_forward =
        (host.kind[row] == HostKind::kOp || host.kind[row] == HostKind::kAnnotation) && host.detail[row] != kNoRow;
    if (has_forward && model_.op_details.forward[host.detail[row]] != kNoRow) {
      write_flow('f', "fwdbwd", "fwdbwd", host.detail[row] + 1, host.lane[row], host.start_ns[row]);
    }
    auto backward = std::lower_bound(backward_of_.begin(), backward_of_.end(), std::pair{row, Row{0}});
    for (; backward != backward_of_.end() && backward->first == row; ++backward) {
      write_flow('s', "fwdbwd", "fwdbwd", backward->second + 1, host.lane[row], host.start_ns[row]);
    }
  }

  void write_device(Row row, std::string_view args) {
    const DeviceSlices& device = model_.device_slices;
    write_slice(device, row, describe::device_category(model_, row), args);
    if (needs_op_arrow(row)) write_flow('f', kOpToWork, kOpToWork, row + 1, device.lane[row], device.start_ns[row]);
    if (device.launch[row] == kNoRow) return;
    write_flow('f', "ac2g", "ac2g", launch_id(device.launch[row]), device.lane[row], device.start_ns[row]);
  }

  int64_t launch_id(Row launch) const {
    const Row detail = model_.host_slices.detail[launch];
    const bool has_detail = is_call(model_.host_slices.kind[launch]) && detail != kNoRow;
    const int64_t correlation = has_detail ? model_.call_details.correlation[detail] : kNoNumber;
    return correlation != kNoNumber ? correlation : kFirstMadeUpId + launch;
  }

  void write_flow(char phase, std::string_view category, std::string_view name, int64_t id, LaneId lane,
                  int64_t time_ns) {
    events_.begin(phase, category, name);
    events_.number(", \"id\": ", place_.number * kIdsOfPlace + id);
    events_.lane(lane);
    events_.at(time_ns);
    if (phase != 's') events_.out() += ", \"bp\": \"e\"";
    events_.end();
  }

  void write_memory(Row row, std::string_view args) {
    const MemoryEvents& memory = model_.memory_events;
    events_.begin('i', "cpu_instant_event",
                  memory.kind[row] == MemoryEventKind::kOutOfMemory ? "[OutOfMemory]" : "[memory]");
    events_.out() += ", \"s\": \"t\"";
    events_.lane(memory.lane[row]);
    events_.at(memory.time_ns[row]);
    add_args(args);
    events_.end();
  }

  void write_instant(Row row, std::string_view args) {
    const Instants& instants = model_.instants;
    events_.begin('i', model_.text(instants.category[row]), model_.text(instants.name[row]));
    events_.text(", \"s\": ", name_of(instants.scope[row]).substr(0, 1));  // t, p or g
    events_.lane(instants.lane[row]);
    events_.at(instants.time_ns[row]);
    add_args(args);
    events_.end();
  }

  // Async slices become b and e, in nesting order, because a reader pairs them by order. That
  // is not the order of the source, so their args (few traces have any) are read beforehand.
  Result<void> write_async_lanes() {
    std::vector<uint64_t> sources;
    const auto collect = [&](const auto& table) {
      for (Row row = 0; row < table.size(); ++row) {
        if (is_async(table.lane[row]) && table.source[row] != kNoSource) sources.push_back(table.source[row]);
      }
    };
    collect(model_.host_slices);
    collect(model_.instants);
    std::sort(sources.begin(), sources.end());
    std::unordered_map<uint64_t, std::string> args;
    if (model_.args != nullptr && !sources.empty()) {
      describe::SourceArgs reader;
      FL_TRY_VOID(model_.args->visit_events(
          sources, [&](size_t index, std::string_view json) { args[sources[index]] = reader.of(json).value_or(""); }));
    }
    const Lanes& lanes = model_.lanes;
    for (uint32_t l = 0; l < lanes.size(); ++l) {
      if (lanes.kind[l] != LaneKind::kAsync) continue;
      const auto edge = [&](Row row, char phase, int64_t time_ns) {
        write_async(phase, LaneId{l}, model_.host_slices.category[row], model_.host_slices.name[row], time_ns,
                    phase == 'b' ? args[model_.host_slices.source[row]] : std::string());
      };
      split_into_tracks(
          model_.host_slices, lanes.host_begin[l], lanes.host_end[l],
          [&](size_t, Row row) { edge(row, 'b', model_.host_slices.start_ns[row]); },
          [&](size_t, Row row) { edge(row, 'e', model_.host_slices.end_ns(row)); });
    }
    for (Row row = 0; row < model_.instants.size(); ++row) {
      const Instants& instants = model_.instants;
      if (!is_async(instants.lane[row])) continue;
      write_async('n', instants.lane[row], instants.category[row], instants.name[row], instants.time_ns[row],
                  args[instants.source[row]]);
    }
    return {};
  }

  void write_async(char phase, LaneId lane, StringId category, StringId name, int64_t time_ns, std::string_view args) {
    events_.begin(phase, model_.text(category), model_.text(name));
    events_.text(", \"id\": ", model_.text(model_.lanes.tid[static_cast<size_t>(lane)].text));
    events_.process(model_.lanes.pid[static_cast<size_t>(lane)]);
    events_.out() += ", \"tid\": 0";
    events_.at(time_ns);
    add_args(args);
    events_.end();
  }

  void write_counters() {
    const CounterSamples& samples = model_.counter_samples;
    for (Row row = 0; row < samples.size() && !sink_.failed(); ++row) {
      const uint32_t track = samples.track[row];
      const TraceId pid = model_.counter_tracks.pid[track];
      const bool is_hardware = device_of_gpu_counters(model_.text(pid.text)) >= 0;
      events_.begin('C', is_hardware ? "hardware_counters" : "", model_.text(model_.counter_tracks.name[track]));
      events_.process(pid);
      events_.out() += ", \"tid\": 0";
      events_.at(samples.time_ns[row]);
      events_.text(", \"args\": {", model_.text(model_.counter_tracks.series[track]));
      events_.out() += ": ";
      if (std::isfinite(samples.value[row])) append_number(events_.out(), samples.value[row]);
      events_.out() += std::isfinite(samples.value[row]) ? "}" : "null}";
      events_.end();
    }
  }

  void write_other_flows() {
    const Flows& flows = model_.flows;
    const auto write_end = [&](char phase, Row row, const SliceRef& at) {
      const LaneId lane = at.on_device ? model_.device_slices.lane[at.row] : model_.host_slices.lane[at.row];
      const int64_t time = at.on_device ? model_.device_slices.start_ns[at.row] : model_.host_slices.start_ns[at.row];
      write_flow(phase, model_.text(flows.category[row]), model_.text(flows.name[row]), flows.flow_id[row], lane, time);
    };
    // s, t, t, f: the rows of such a chain follow each other, each from where the last one led.
    const auto continues = [&](Row row, Row next) {
      return flows.category[row] == flows.category[next] && flows.name[row] == flows.name[next] &&
             flows.flow_id[row] == flows.flow_id[next] && flows.to[row] == flows.from[next];
    };
    for (Row row = 0; row < flows.size() && !sink_.failed(); ++row) {
      if (row == 0 || !continues(row - 1, row)) write_end('s', row, flows.from[row]);
      write_end(row + 1 < flows.size() && continues(row, row + 1) ? 't' : 'f', row, flows.to[row]);
    }
  }

  // Their ids come after those of all traces.
  void write_arrows_between_traces() {
    for (const ArrowEnd& end : place_.arrows) {
      const Row row = end.slice.row;
      const bool device = end.slice.on_device;
      const LaneId lane = device ? model_.device_slices.lane[row] : model_.host_slices.lane[row];
      events_.begin(end.starts ? 's' : 'f', "ranks", "ranks");
      events_.number(", \"id\": ", kMostPlaces * kIdsOfPlace + static_cast<int64_t>(end.id));
      events_.lane(lane);
      events_.at(!end.starts ? end.time_ns
                 : device    ? model_.device_slices.start_ns[row]
                             : model_.host_slices.start_ns[row]);
      if (!end.starts) events_.out() += ", \"bp\": \"e\"";
      events_.end();
    }
  }

  static constexpr int64_t kLanesOfPlace = 1000;
  static constexpr int64_t kIdsOfPlace = int64_t{1} << 44;  // 256 of them are exact as JavaScript's numbers

  const Model& model_;
  ByteSink& sink_;
  ExportPlace place_;
  ChromeEvents events_;
  KinetoExtras kineto_;
  std::vector<bool> launches_;                    // host slices that queued device work
  std::vector<std::pair<Row, Row>> backward_of_;  // forward slice, op_details of its backward op
  std::vector<std::pair<Row, Row>> work_of_;      // op and its device work, where no id joins them; sorted
  std::string own_args_;
  std::string written_;
  bool has_overload_names_;  // asked for when recording, as in torch
};

}  // namespace

Result<void> export_chrome(const Model& model, ByteSink& sink, const ExportPlace& place) {
  return ChromeExport(model, sink, place).run();
}

void begin_chrome(ByteSink& sink) {
  sink.write("{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"traceEvents\": [");
}
Result<void> add_to_chrome(const Model& model, const ExportPlace& place, ByteSink& sink) {
  return ChromeExport(model, sink, place).add();
}
void end_chrome(ByteSink& sink) { sink.write("\n]\n}\n"); }

}  // namespace firelane::exporter
