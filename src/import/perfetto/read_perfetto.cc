#include "import/perfetto/read_perfetto.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <protozero/pbf_reader.hpp>

#include "base/json_writer.h"
#include "import/json/event_rows.h"
#include "import/perfetto/packet_reader.h"
#include "import/perfetto/packets.h"
#include "import/whole.h"
#include "model/gpu_counters.h"

namespace firelane::importer {

namespace {

using namespace pftrace;  // NOLINT(google-build-using-namespace): the words of this file
using Fields = protozero::pbf_reader;

enum : int64_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4 };  // types of track events

// "1234.567": microseconds, as events of Chrome JSON have them.
std::string as_micros(int64_t ns) {
  const bool negative = ns < 0;
  const uint64_t size = negative ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  std::string rest = std::to_string(size % 1000);
  rest.insert(0, 3 - rest.size(), '0');
  return (negative ? "-" : "") + std::to_string(size / 1000) + "." + rest;
}

// Slices of tracks as rows.
class PerfettoReader : public EventHandler {
 public:
  PerfettoReader() { rows_.begin_part(part_, 0); }

  Result<RawTrace> run(const std::string& bytes, const ReadRequest& request) {
    raw_.info.content_bytes = bytes.size();
    read_packets(bytes, {.handler = *this,
                         .part = part_,
                         .base_time_ns = raw_.info.base_time_ns,
                         .most_bytes = request.max_content_bytes});
    close_open();
    add_names();
    if (part_.host_slices.empty() && part_.device_slices.empty() && part_.counters.empty() && part_.instants.empty()) {
      return Error{request.name +
                   ": a Perfetto trace without track events (slices, instants or counters); nothing of it is read"};
    }
    raw_.info.format = "Perfetto";
    raw_.info.origin = Origin::kPerfetto;
    const bool has_device = !part_.device_slices.empty() || !part_.call_details.empty();
    raw_.info.accelerator = part_.accelerator != Accelerator::kUnknown ? part_.accelerator
                            : has_device                               ? Accelerator::kCuda
                                                                       : Accelerator::kUnknown;
    return std::move(raw_);
  }

  void on_track(uint64_t uuid, Track track) override {
    tracks_[uuid] = std::move(track);
    places_.erase(uuid);
  }

  void on_event(TrackEvent event, int64_t time_ns) override {
    last_ns_ = std::max(last_ns_, time_ns);
    switch (event.type) {
      case kSliceBegin: {
        Nest& nest = open_[event.track];
        nest.open.push_back(nest.slices.size());
        nest.slices.push_back({.event = std::move(event), .start_ns = time_ns});
        break;
      }
      case kSliceEnd: {
        Nest& nest = open_[event.track];
        if (nest.open.empty()) {
          ++part_.losses[Stat::kEndWithoutBegin];
          return;
        }
        Slice& slice = nest.slices[nest.open.back()];
        nest.open.pop_back();
        // What the end says counts too: args that were known only then.
        for (Annotation& each : event.annotations) slice.event.annotations.push_back(std::move(each));
        slice.end_ns = time_ns;
        if (nest.open.empty()) add_slices(nest);
        break;
      }
      case kInstant: add_event(event, "\"i\"", time_ns, 0); break;
      case kCounter:
        if (event.has_value) add_counter(event, time_ns);
        break;
      default: ++part_.losses[Stat::kEventNotUsed];
    }
  }

 private:
  struct Slice {
    TrackEvent event;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };
  // An outermost slice of a track and all in it. Rows are made in the order in which slices begin: of two with the same
  // times the first is around the second.
  struct Nest {
    std::vector<Slice> slices;
    std::vector<size_t> open;  // of them, innermost last
  };

  void add_slices(Nest& nest) {
    for (const Slice& slice : nest.slices) add_slice(slice.event, slice.start_ns, slice.end_ns);
    nest.slices.clear();
  }

  void close_open() {
    for (auto& [track, nest] : open_) {
      for (const size_t open : nest.open) {
        ++part_.losses[Stat::kBeginWithoutEnd];
        nest.slices[open].end_ns = std::max(last_ns_, nest.slices[open].start_ns);
      }
      add_slices(nest);
    }
  }

  // ---- as an event of Chrome JSON

  struct Place {
    std::string pid, tid;  // tokens
  };

  // The process and thread that a track stands for: its own, or those of the tracks around it.
  const Place& place_of(uint64_t uuid) {
    const auto [at, added] = places_.try_emplace(uuid);
    if (!added) return at->second;
    Place place;
    const auto found = tracks_.find(uuid);
    if (found == tracks_.end()) {
      place = {.pid = "0", .tid = std::to_string(uuid % INT32_MAX)};
    } else if (found->second.is_thread) {
      place = {.pid = std::to_string(found->second.pid), .tid = std::to_string(found->second.tid)};
    } else {
      const Track* around = &found->second;
      for (int depth = 0; depth < 16 && !around->is_process && !around->is_thread; ++depth) {
        const auto up = tracks_.find(around->parent);
        if (up == tracks_.end()) break;
        around = &up->second;
      }
      const bool is_counters = device_of_gpu_counters(around->name) >= 0;
      const std::string device =
          is_counters ? "" : number_behind(around->name, {"GPU ", "TPU ", "NPU ", "XPU ", "HPU ", "MTIA "});
      place.pid = around->is_process || around->is_thread ? std::to_string(around->pid)
                  : !device.empty()                       ? device
                                                          : json_text_of(around->name.empty() ? "trace" : around->name);
      const std::string stream = number_behind(found->second.name, {"stream ", "Stream "});
      place.tid = !stream.empty() ? stream : json_text_of(found->second.name);
      // Beside a thread's track may stand others of its name, for slices that overlap: they are the same thread.
      for (const auto& [id, track] : tracks_) {
        const bool is_same = track.is_thread && track.pid == around->pid && track.thread_name == found->second.name;
        if (around->is_process && is_same) place.tid = std::to_string(track.tid);
      }
    }
    at->second = std::move(place);
    return at->second;
  }

  // "7" of "stream 7"; "" where there is another word or no number.
  static std::string number_behind(std::string_view text, std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) {
      if (!text.starts_with(word)) continue;
      const std::string_view rest = text.substr(word.size());
      const size_t end = rest.find_first_not_of("0123456789");
      const bool is_number = end != 0 && !rest.empty() && rest.size() < 18 + 200;
      if (is_number && rest.substr(0, end).size() < 18) return std::string(rest.substr(0, end));
    }
    return "";
  }

  void add_slice(const TrackEvent& event, int64_t start_ns, int64_t end_ns) {
    const int64_t duration = end_ns - start_ns;
    if (duration < 0) ++part_.losses[Stat::kDurationOutOfRange];
    add_event(event, "\"X\"", start_ns, std::max<int64_t>(0, duration));
    add_flows(event, start_ns);
  }

  void add_event(const TrackEvent& event, std::string_view phase, int64_t time_ns, int64_t duration_ns) {
    const Place& place = place_of(event.track);
    const std::string name = json_text_of(event.name);
    const std::string category = json_text_of(event.category);
    const std::string ts = as_micros(time_ns);
    const std::string dur = as_micros(duration_ns);
    raw_event_.clear();
    raw_event_.phase = phase;
    raw_event_.name = name;
    if (!event.category.empty()) raw_event_.category = category;
    raw_event_.pid = place.pid;
    raw_event_.tid = place.tid;
    raw_event_.ts = ts;
    raw_event_.dur = dur;
    for (const Annotation& each : event.annotations) {
      key_.assign(each.key).append("\"").append(64, '\0');  // arg_id() reads behind the quote
      const ArgId id = arg_id(key_.data());
      if (id == ArgId::kUnknown) continue;
      raw_event_.args[static_cast<size_t>(id)] = each.json;
      raw_event_.seen_args[raw_event_.seen_count++ & (kArgCount - 1)] = id;
    }
    rows_.add(raw_event_, kNoSource);
    --part_.event_count;  // packets are counted, not what they become
  }

  void add_counter(const TrackEvent& event, int64_t time_ns) {
    const auto track = tracks_.find(event.track);
    const Place& place = place_of(event.track);
    TraceId pid;
    if (std::from_chars(place.pid.data(), place.pid.data() + place.pid.size(), pid.number).ec != std::errc{})
      pid = pool_.text_id(place.pid.size() > 1 ? place.pid.substr(1, place.pid.size() - 2) : "");
    const std::string name = track == tracks_.end() || track->second.name.empty() ? "counter" : track->second.name;
    if (!std::isfinite(event.value)) {
      ++part_.losses[Stat::kNotANumber];
      return;
    }
    part_.counters.push_back(
        {.time_ns = time_ns, .value = event.value, .pid = pid, .name = pool_.strings.intern(name)});
  }

  // An arrow's name is not in the file; what it joins tells which of Kineto's it is.
  void add_flows(const TrackEvent& event, int64_t start_ns) {
    const bool is_op = event.category == "cpu_op" || event.category == "user_annotation";
    const auto add = [&](uint64_t id, bool is_end) {
      const auto [first, added] = flow_from_op_.try_emplace(id, is_op);
      ends_.push_back({.id = id,
                       .time_ns = start_ns,
                       .track = event.track,
                       .is_op = is_op,
                       .phase = is_end  ? FlowPhase::kEnd
                                : added ? FlowPhase::kStart
                                        : FlowPhase::kStep});
    };
    for (const uint64_t id : event.flows) add(id, false);
    for (const uint64_t id : event.ending_flows) add(id, true);
  }

  void write_flows() {
    // From op to op: forward to backward; all else in a trace of torch is a launch.
    std::unordered_map<uint64_t, std::pair<bool, bool>> kinds;  // all are ops; none is
    for (const FlowEnd& end : ends_) {
      auto [at, added] = kinds.try_emplace(end.id, true, true);
      (end.is_op ? at->second.second : at->second.first) = false;
    }
    const StringId forward = pool_.strings.intern("fwdbwd");
    const StringId launch = pool_.strings.intern("ac2g");
    const StringId other = pool_.strings.intern("flow");
    const bool is_torch = !part_.op_details.empty();
    for (const FlowEnd& end : ends_) {
      const auto [all_ops, no_ops] = kinds.at(end.id);
      const StringId name = !is_torch ? other : all_ops ? forward : launch;
      const Place& place = place_of(end.track);
      part_.flow_ends.push_back({.time_ns = end.time_ns,
                                 .id = static_cast<int64_t>(end.id),
                                 .name = name,
                                 .category = name,
                                 .lane = lane_of(place),
                                 .phase = end.phase,
                                 .bind_enclosing = true});
    }
  }

  TraceId id_of(const std::string& token) {
    TraceId id;
    const auto parsed = std::from_chars(token.data(), token.data() + token.size(), id.number);
    if (parsed.ec == std::errc{} && parsed.ptr == token.data() + token.size()) return id;
    // As the JSON reader reads the token.
    return {.number = kNoNumber,
            .text = pool_.strings.intern(token.size() > 1 ? token.substr(1, token.size() - 2) : "")};
  }
  LaneId lane_of(const Place& place) { return pool_.lane(id_of(place.pid), id_of(place.tid)); }

  void add_names() {
    write_flows();
    for (const auto& [uuid, track] : tracks_) {
      if (track.is_counter) continue;
      const LaneId lane = lane_of(place_of(uuid));
      const std::string& name = track.thread_name.empty() ? track.name : track.thread_name;
      if (!track.is_process && !name.empty())
        part_.lane_names.push_back(
            {.lane = lane, .what = LaneNameKind::kThreadName, .text = pool_.strings.intern(name)});
      if (!track.process_name.empty())
        part_.lane_names.push_back(
            {.lane = lane, .what = LaneNameKind::kProcessName, .text = pool_.strings.intern(track.process_name)});
    }
  }

  struct FlowEnd {
    uint64_t id = 0;
    int64_t time_ns = 0;
    uint64_t track = 0;
    bool is_op = false;
    FlowPhase phase = FlowPhase::kStart;
  };

  RawTrace raw_;
  RawPool& pool_ = raw_.pools.emplace_back();
  RawPart& part_ = raw_.parts.emplace_back();
  EventRows rows_{pool_};
  RawEvent raw_event_;
  std::string key_;
  std::map<uint64_t, Track> tracks_;
  std::unordered_map<uint64_t, Place> places_;
  std::map<uint64_t, Nest> open_;
  std::unordered_map<uint64_t, bool> flow_from_op_;
  std::vector<FlowEnd> ends_;
  int64_t last_ns_ = INT64_MIN;
};

// Whether the fields of a packet are such as packets have; `is_whole`: its last byte is there.
bool looks_like_packet(std::string_view bytes, bool is_whole) {
  bool has_known = false;
  try {
    Fields fields(bytes.data(), bytes.size());
    while (fields.next()) {
      const uint32_t tag = fields.tag();
      if (tag > 2000) return false;
      for (const uint32_t known : {kClockSnapshot, kTimestamp, kSequenceId, kTrackEvent, kInternedData, kSequenceFlags,
                                   kCompressed, kClockId, kDefaults, kTrackDescriptor, 33U, 36U}) {
        has_known = has_known || tag == known;
      }
      fields.skip();
    }
    return has_known;
  } catch (const protozero::exception&) {
    return has_known && !is_whole;
  }
}

}  // namespace

bool is_perfetto(std::string_view begin) {
  if (begin.size() < 4 || begin[0] != '\x0A') return false;
  const char* at = begin.data() + 1;
  const char* const end = begin.data() + begin.size();
  try {
    const uint64_t size = protozero::decode_varint(&at, end);
    const std::string_view rest(at, static_cast<size_t>(end - at));
    const bool is_whole = size <= rest.size();
    // Behind the first packet stands another one.
    const bool goes_on = !is_whole || size == rest.size() || rest[static_cast<size_t>(size)] == '\x0A';
    return size > 0 && goes_on && looks_like_packet(rest.substr(0, std::min<uint64_t>(size, rest.size())), is_whole);
  } catch (const protozero::exception&) {
    return false;
  }
}

Reader perfetto_reader() {
  return {"Perfetto", is_perfetto,
          [](std::unique_ptr<ByteSource> content, const ReadRequest& request) -> Result<RawTrace> {
            FL_TRY(const std::string bytes, read_whole_content(*content, request));
            FL_TRY(RawTrace raw, PerfettoReader().run(bytes, request));
            raw.losses.add(content->losses());
            return raw;
          }};
}

}  // namespace firelane::importer
