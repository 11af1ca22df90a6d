#include "export/perfetto.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "describe/category.h"
#include "describe/kineto_args.h"
#include "describe/lane_name.h"
#include "export/lane_tracks.h"
#include "export/perfetto_packets.h"

namespace firelane::exporter {

namespace {

using namespace perfetto;

// Which arrows start and end at each slice: (row, flow id), sorted by row.
using FlowEnds = std::vector<std::pair<Row, uint64_t>>;

constexpr int kIdBits = 44;  // of the arrows of one trace

// Ids of arrows between traces come after those of all traces.
uint64_t between_traces(const ArrowEnd& end) { return (static_cast<uint64_t>(kMostPlaces) << kIdBits) + end.id; }

struct FlowTables {
  FlowEnds host_from, host_to, device_from, device_to;

  explicit FlowTables(uint64_t before) : last_id_(before) {}
  void add(const SliceRef& from, const SliceRef& to) {
    const uint64_t id = ++last_id_;
    (from.on_device ? device_from : host_from).emplace_back(from.row, id);
    (to.on_device ? device_to : host_to).emplace_back(to.row, id);
  }
  void add_start(const ArrowEnd& end) {
    (end.slice.on_device ? device_from : host_from).emplace_back(end.slice.row, between_traces(end));
  }
  void sort() {
    for (FlowEnds* ends : {&host_from, &host_to, &device_from, &device_to}) std::sort(ends->begin(), ends->end());
  }

 private:
  uint64_t last_id_;
};

FlowTables find_flows(const Model& model, const ExportPlace& place) {
  FlowTables flows(static_cast<uint64_t>(place.number) << kIdBits);
  for (const ArrowEnd& end : place.arrows) {
    if (end.starts) flows.add_start(end);
  }
  const DeviceSlices& device = model.device_slices;
  std::vector<bool> launches(model.host_slices.size());
  for (Row row = 0; row < device.size(); ++row) {
    const SliceRef work{.row = row, .on_device = true};
    if (device.launch[row] != kNoRow) {
      flows.add({.row = device.launch[row]}, work);
      launches[device.launch[row]] = true;
    } else if (device.op[row] != kNoRow) {
      flows.add({.row = device.op[row]}, work);
    }
  }
  const CallDetails& calls = model.call_details;
  for (Row call = 0; call < calls.size(); ++call) {
    if (calls.slice[call] == kNoRow || calls.op[call] == kNoRow || !launches[calls.slice[call]]) continue;
    flows.add({.row = calls.op[call]}, {.row = calls.slice[call]});
  }
  const OpDetails& ops = model.op_details;
  for (Row op = 0; op < ops.size(); ++op) {
    if (ops.forward[op] != kNoRow && ops.slice[op] != kNoRow)
      flows.add({.row = ops.forward[op]}, {.row = ops.slice[op]});
  }
  for (Row row = 0; row < model.flows.size(); ++row) flows.add(model.flows.from[row], model.flows.to[row]);
  flows.sort();
  return flows;
}

void add_flows(protozero::pbf_writer& writer, uint32_t field, const FlowEnds& ends, Row row) {
  auto at = std::lower_bound(ends.begin(), ends.end(), std::pair{row, uint64_t{0}});
  for (; at != ends.end() && at->first == row; ++at) writer.add_fixed64(field, at->second);
}

bool fits_int32(int64_t number) { return number >= 0 && number <= std::numeric_limits<int32_t>::max(); }

class PerfettoExport {
 public:
  PerfettoExport(const Model& model, ByteSink& sink, const ExportPlace& place)
      : model_(model),
        sink_(sink),
        place_(place),
        packets_(model, sink, static_cast<uint32_t>(place.number) + 1),
        flows_(find_flows(model, place)),
        last_uuid_(static_cast<uint64_t>(place.number) << 32) {}

  void run() {
    choose_clock();
    describe_lanes();
    for (uint32_t l = 0; l < model_.lanes.size() && !sink_.failed(); ++l) {
      const LaneId lane{l};
      write_slices(
          lane, model_.host_slices, model_.lanes.host_begin[l], model_.lanes.host_end[l], flows_.host_from,
          flows_.host_to, [&](Row row) { return describe::host_category(model_, row); },
          [&](Row row) { describe::visit_host_args(model_, row, packets_); });
      write_slices(
          lane, model_.device_slices, model_.lanes.device_begin[l], model_.lanes.device_end[l], flows_.device_from,
          flows_.device_to, [&](Row row) { return describe::plain_device_category(model_, row); },
          [&](Row row) { describe::visit_device_args(model_, row, packets_); });
    }
    write_instants();
    write_arrow_ends();
    write_counters();
    write_memory();
    packets_.flush();
  }

 private:
  // Perfetto's times are unsigned: those before a clock of 0 are all moved together.
  void choose_clock() {
    int64_t first = 0;
    for (const auto& times : {view_of(model_.instants.time_ns), view_of(model_.memory_events.time_ns),
                              view_of(model_.counter_samples.time_ns)}) {
      if (times.size() > 0) first = std::min(first, times[0]);
    }
    offset_ns_ = std::max(model_.info.start_ns, -first);
    if (place_.is_alone() && model_.info.base_time_ns != 0) {
      packets_.write_clock_snapshot(stamp(0), static_cast<uint64_t>(model_.info.base_time_ns + model_.info.start_ns));
    }
  }
  uint64_t stamp(int64_t time_ns) const {
    return static_cast<uint64_t>(place_.time ? std::max<int64_t>(0, place_.time(time_ns)) : offset_ns_ + time_ns);
  }

  std::string group_name(LaneId lane) const {
    const auto l = static_cast<size_t>(lane);
    std::string name = describe::process_name(model_, lane);
    if (!place_.is_alone()) name = place_.name + ": " + name;
    if (model_.lanes.kind[l] != LaneKind::kStream) return name.empty() ? "trace" : name;
    for (const DeviceProperties& device : model_.info.devices) {
      if (device.id == model_.lanes.pid[l].number && !device.name.empty()) name += " (" + device.name + ")";
    }
    return name;
  }

  bool is_process(LaneId lane) const {
    const auto l = static_cast<size_t>(lane);
    // Ranks of different machines have processes of the same number, which Perfetto would take for one.
    return place_.is_alone() && model_.lanes.kind[l] != LaneKind::kStream && model_.lanes.pid[l].number > 0 &&
           fits_int32(model_.lanes.pid[l].number);
  }

  void describe_lanes() {
    const Lanes& lanes = model_.lanes;
    for (uint32_t l = 0; l < lanes.size(); ++l) {
      const LaneId lane{l};
      const auto key = std::tuple(lanes.kind[l] == LaneKind::kStream, lanes.pid[l].number, lanes.pid[l].text);
      uint64_t& group = groups_[key];
      if (group == 0) group = describe_group(lane);
      group_of_.push_back(group);
      lane_track_.push_back(describe_track(lane, 0));
    }
  }

  uint64_t describe_group(LaneId lane) {
    const uint64_t uuid = ++last_uuid_;
    std::string valid;
    append_valid_utf8(valid, group_name(lane));
    std::string body;
    protozero::pbf_writer writer(body);
    writer.add_uint64(descriptor::kUuid, uuid);
    writer.add_string(descriptor::kName, valid);
    writer.add_enum(descriptor::kChildOrdering, descriptor::kExplicitOrder);
    if (is_process(lane)) {
      const auto l = static_cast<size_t>(lane);
      std::string name;
      append_valid_utf8(name, model_.text(model_.lanes.process_name[l]));
      protozero::pbf_writer process(writer, descriptor::kProcess);
      process.add_int32(descriptor::kProcessPid, static_cast<int32_t>(model_.lanes.pid[l].number));
      if (!name.empty()) process.add_string(descriptor::kProcessName, name);
    }
    packets_.write_descriptor(body);
    return uuid;
  }

  // The track of a lane, or a further one for slices that overlap.
  uint64_t describe_track(LaneId lane, size_t number) {
    const auto l = static_cast<size_t>(lane);
    const uint64_t uuid = ++last_uuid_;
    std::string valid;
    append_valid_utf8(valid, describe::lane_name(model_, lane));
    const bool is_thread = number == 0 && is_process(lane) && model_.lanes.kind[l] != LaneKind::kAsync &&
                           fits_int32(model_.lanes.tid[l].number);
    std::string body;
    protozero::pbf_writer writer(body);
    writer.add_uint64(descriptor::kUuid, uuid);
    writer.add_uint64(descriptor::kParentUuid, group_of_[l]);
    if (is_thread) {
      protozero::pbf_writer thread(writer, descriptor::kThread);
      thread.add_int32(descriptor::kThreadPid, static_cast<int32_t>(model_.lanes.pid[l].number));
      thread.add_int32(descriptor::kThreadTid, static_cast<int32_t>(model_.lanes.tid[l].number));
      thread.add_string(descriptor::kThreadName, valid);
    } else {
      writer.add_string(descriptor::kName, valid);
      writer.add_int32(descriptor::kSiblingOrderRank, static_cast<int32_t>(l));
    }
    packets_.write_descriptor(body);
    return uuid;
  }

  template <typename Slices, typename Category, typename AddArgs>
  void write_slices(LaneId lane, const Slices& slices, Row first, Row last, const FlowEnds& from, const FlowEnds& to,
                    const Category& category, const AddArgs& add_args) {
    std::vector<uint64_t> tracks = {lane_track_[static_cast<size_t>(lane)]};
    const auto begin = [&](size_t track, Row row) {
      if (track == tracks.size()) tracks.push_back(describe_track(lane, track));
      protozero::pbf_writer event = packets_.begin_event(event::kSliceBegin, tracks[track]);
      if (category(row) == model_.text(slices.category[row])) {
        packets_.add_name(event, slices.category[row], slices.name[row]);
      } else {
        packets_.add_name(event, category(row), slices.name[row]);
      }
      add_flows(event, event::kFlowIds, from, row);
      add_flows(event, event::kTerminatingFlowIds, to, row);
      add_args(row);
      packets_.end_event(stamp(slices.start_ns[row]));
    };
    const auto end = [&](size_t track, Row row) {
      packets_.begin_event(event::kSliceEnd, tracks[track]);
      packets_.end_event(stamp(slices.end_ns(row)));
    };
    split_into_tracks(slices, first, last, begin, end);
  }

  void write_instants() {
    const Instants& instants = model_.instants;
    for (Row row = 0; row < instants.size(); ++row) {
      const uint64_t track = lane_track_[static_cast<size_t>(instants.lane[row])];
      protozero::pbf_writer event = packets_.begin_event(event::kInstant, track);
      packets_.add_name(event, instants.category[row], instants.name[row]);
      packets_.end_event(stamp(instants.time_ns[row]));
    }
  }

  // An event of its own in the slice that waits: a slice's own arrows are at its start.
  void write_arrow_ends() {
    for (const ArrowEnd& end : place_.arrows) {
      if (end.starts) continue;
      const LaneId lane =
          end.slice.on_device ? model_.device_slices.lane[end.slice.row] : model_.host_slices.lane[end.slice.row];
      protozero::pbf_writer event = packets_.begin_event(event::kInstant, lane_track_[static_cast<size_t>(lane)]);
      event.add_string(event::kName, "last rank arrives");
      event.add_fixed64(event::kTerminatingFlowIds, between_traces(end));
      packets_.end_event(stamp(end.time_ns));
    }
  }

  // "GPU 0 Counters": a process without lanes, which has counters alone.
  uint64_t describe_counters_of(StringId process) {
    const uint64_t uuid = ++last_uuid_;
    std::string valid;
    append_valid_utf8(valid, model_.text(process));
    std::string body;
    protozero::pbf_writer writer(body);
    writer.add_uint64(descriptor::kUuid, uuid);
    writer.add_string(descriptor::kName, valid);
    packets_.write_descriptor(body);
    return uuid;
  }

  uint64_t describe_counter(std::string_view name, uint64_t parent, bool is_bytes) {
    const uint64_t uuid = ++last_uuid_;
    std::string valid;
    append_valid_utf8(valid, name);
    std::string body;
    protozero::pbf_writer writer(body);
    writer.add_uint64(descriptor::kUuid, uuid);
    if (parent != 0) writer.add_uint64(descriptor::kParentUuid, parent);
    writer.add_string(descriptor::kName, valid);
    std::string counter;
    if (is_bytes) protozero::pbf_writer(counter).add_enum(descriptor::kCounterUnit, descriptor::kUnitBytes);
    writer.add_message(descriptor::kCounter, counter);
    packets_.write_descriptor(body);
    return uuid;
  }

  void write_counters() {
    const CounterTracks& tracks = model_.counter_tracks;
    std::vector<uint64_t> uuids;
    for (size_t track = 0; track < tracks.size(); ++track) {
      std::string name(model_.text(tracks.name[track]));
      if (tracks.series[track] != kNoString) name += " " + std::string(model_.text(tracks.series[track]));
      const TraceId pid = tracks.pid[track];
      auto group = groups_.find(std::tuple(false, pid.number, pid.text));
      if (group == groups_.end() && pid.text != kNoString)
        group = groups_.emplace(std::tuple(false, pid.number, pid.text), describe_counters_of(pid.text)).first;
      uuids.push_back(describe_counter(name, group == groups_.end() ? 0 : group->second, false));
    }
    for (Row row = 0; row < model_.counter_samples.size(); ++row) {
      protozero::pbf_writer event = packets_.begin_event(event::kCounter, uuids[model_.counter_samples.track[row]]);
      event.add_double(event::kDoubleCounterValue, model_.counter_samples.value[row]);
      packets_.end_event(stamp(model_.counter_samples.time_ns[row]));
    }
  }

  void write_memory() {
    const MemoryEvents& memory = model_.memory_events;
    std::map<std::tuple<uint64_t, int32_t, int32_t, bool>, uint64_t> counters;
    const auto sample = [&](Row row, bool reserved, int64_t value) {
      if (value == kNoNumber) return;
      const uint64_t group = group_of_[static_cast<size_t>(memory.lane[row])];
      uint64_t& uuid = counters[{group, memory.device_type[row], memory.device[row], reserved}];
      if (uuid == 0) uuid = describe_counter(memory_name(row, reserved), group, true);
      packets_.begin_event(event::kCounter, uuid).add_int64(event::kCounterValue, value);
      packets_.end_event(stamp(memory.time_ns[row]));
    };
    for (Row row = 0; row < memory.size() && !sink_.failed(); ++row) {
      sample(row, false, memory.total_allocated_bytes[row]);
      if (memory.device_type[row] != 0) sample(row, true, memory.total_reserved_bytes[row]);
    }
  }

  std::string memory_name(Row row, bool reserved) const {
    const int32_t type = model_.memory_events.device_type[row];
    const std::string what = reserved ? "memory reserved, " : "memory allocated, ";
    if (type == 0) return what + "CPU";
    const std::string device = std::to_string(model_.memory_events.device[row]);
    return what + (type == 1 ? "GPU " : "device type " + std::to_string(type) + ", ") + device;
  }

  const Model& model_;
  ByteSink& sink_;
  const ExportPlace& place_;
  PacketWriter packets_;
  FlowTables flows_;
  int64_t offset_ns_ = 0;
  uint64_t last_uuid_;
  std::map<std::tuple<bool, int64_t, StringId>, uint64_t> groups_;  // is a GPU, process id
  std::vector<uint64_t> group_of_;                                  // by lane
  std::vector<uint64_t> lane_track_;                                // by lane
};

}  // namespace

void export_perfetto(const Model& model, ByteSink& sink, const ExportPlace& place) {
  PerfettoExport(model, sink, place).run();
}

}  // namespace firelane::exporter
