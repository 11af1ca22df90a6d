#include "import/perfetto/read_perfetto.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <protozero/pbf_reader.hpp>

#include "base/json_writer.h"
#include "import/json/event_rows.h"
#include "import/perfetto/packets.h"
#include "import/whole.h"

namespace firelane::importer {

namespace {

using namespace pftrace;  // NOLINT(google-build-using-namespace): the words of this file
using Wire = protozero::pbf_wire_type;
using Fields = protozero::pbf_reader;

enum : int64_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4 };

std::string_view piece(Fields& field) {
  if (field.wire_type() != Wire::length_delimited) {
    field.skip();
    return {};
  }
  const auto view = field.get_view();
  return {view.data(), view.size()};
}

uint64_t whole_number(Fields& field) {
  switch (field.wire_type()) {
    case Wire::varint: return field.get_uint64();
    case Wire::fixed64: return field.get_fixed64();
    case Wire::fixed32: return field.get_fixed32();
    default: field.skip(); return 0;
  }
}

std::string quoted_json(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.take();
}

// "1234.567": microseconds, as events of Chrome JSON have them.
std::string as_micros(int64_t ns) {
  const bool negative = ns < 0;
  const uint64_t size = negative ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  std::string rest = std::to_string(size % 1000);
  rest.insert(0, 3 - rest.size(), '0');
  return (negative ? "-" : "") + std::to_string(size / 1000) + "." + rest;
}

class PerfettoReader {
 public:
  PerfettoReader() { rows_.begin_part(part_, 0); }

  Result<RawTrace> run(const std::string& bytes, const ReadRequest& request) {
    most_bytes_ = request.max_content_bytes;
    raw_.info.content_bytes = bytes.size();
    read_packets(bytes, 0);
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

 private:
  // What goes wrong in a message ends it; the packets behind it are read.
  template <typename Visit>
  void each(std::string_view bytes, const Visit& visit) {
    try {
      Fields fields(bytes.data(), bytes.size());
      while (fields.next()) visit(fields);
    } catch (const protozero::exception&) {
      ++part_.losses[Stat::kMessageMalformed];
    }
  }

  void read_packets(std::string_view bytes, int depth) {
    each(bytes, [&](Fields& field) {
      if (field.tag() != kTracePacket) return field.skip();
      read_packet(piece(field), depth);
    });
  }

  void read_packet(std::string_view bytes, int depth) {
    uint64_t sequence_id = 0;
    uint64_t flags = 0;
    std::optional<uint64_t> time;
    uint64_t clock = 0;
    std::string_view event, data, defaults, descriptor, snapshot, compressed;
    bool is_cleared = false;
    bool is_other = true;
    each(bytes, [&](Fields& field) {
      switch (field.tag()) {
        case kSequenceId: sequence_id = whole_number(field); break;
        case kSequenceFlags: flags = whole_number(field); break;
        case kStateCleared: is_cleared = whole_number(field) != 0; break;
        case kTimestamp: time = whole_number(field); break;
        case kClockId: clock = whole_number(field); break;
        case kTrackEvent: event = piece(field); break;
        case kInternedData: data = piece(field); break;
        case kDefaults: defaults = piece(field); break;
        case kTrackDescriptor: descriptor = piece(field); break;
        case kClockSnapshot: snapshot = piece(field); break;
        case kCompressed: compressed = piece(field); break;
        default: field.skip(); return;
      }
      is_other = false;
    });
    Sequence& sequence = sequences_[sequence_id];
    if (is_cleared || (flags & 1) != 0) sequence.forget();
    if (!defaults.empty()) read_defaults(defaults, sequence);
    if (!snapshot.empty()) read_snapshot(snapshot, sequence);
    if (!data.empty()) read_interned(data, sequence);
    if (!descriptor.empty()) read_descriptor(descriptor);
    if (!compressed.empty() && depth == 0) read_compressed(compressed);
    if (event.data() != nullptr && !event.empty()) {
      ++part_.event_count;
      if (!time) {
        ++part_.losses[Stat::kEventWithoutTime];
        return;
      }
      const int64_t time_ns = on_trace_clock(*time, clock != 0 ? clock : sequence.default_clock, sequence);
      if (time_ns < kMinTimeNs || time_ns > kMaxTimeNs) {
        ++part_.losses[Stat::kTimeOutOfRange];
        return;
      }
      read_event(event, sequence, time_ns);
    } else if (is_other) {
      ++part_.losses[Stat::kEventNotUsed];
    }
  }

  // ---- clocks

  static constexpr uint64_t kRealtime = 1, kBoottime = 6, kFirstOwnClock = 64;

  void read_snapshot(std::string_view bytes, Sequence& sequence) {
    struct Reading {
      uint64_t id = 0, time = 0, unit_ns = 1;
      bool is_incremental = false;
    };
    std::vector<Reading> readings;
    each(bytes, [&](Fields& field) {
      if (field.tag() != 1) return field.skip();
      Reading reading;
      each(piece(field), [&](Fields& part) {
        switch (part.tag()) {
          case 1: reading.id = whole_number(part); break;
          case 2: reading.time = whole_number(part); break;
          case 3: reading.is_incremental = whole_number(part) != 0; break;
          case 4: reading.unit_ns = std::clamp<uint64_t>(whole_number(part), 1, 1'000'000'000); break;
          default: part.skip();
        }
      });
      if (readings.size() < 64) readings.push_back(reading);
    });
    const auto find = [&](uint64_t id) -> const Reading* {
      const auto found = std::find_if(readings.begin(), readings.end(), [&](const Reading& r) { return r.id == id; });
      return found == readings.end() ? nullptr : &*found;
    };
    const Reading* const boot = find(kBoottime);
    const Reading* const real = find(kRealtime);
    const auto is_small = [](uint64_t time) { return time < static_cast<uint64_t>(kMaxTimeNs); };
    if (boot != nullptr && real != nullptr && is_small(boot->time) && is_small(real->time) &&
        raw_.info.base_time_ns == 0)
      raw_.info.base_time_ns = static_cast<int64_t>(real->time) - static_cast<int64_t>(boot->time);
    for (const Reading& reading : readings) {
      if (reading.id < kFirstOwnClock || sequence.clocks.size() > 64) continue;
      Sequence::Clock& own = sequence.clocks[reading.id];
      own = {.is_incremental = reading.is_incremental, .unit_ns = reading.unit_ns, .now = reading.time};
      const uint64_t now_ns = reading.time * reading.unit_ns;
      if (boot != nullptr && is_small(boot->time) && is_small(now_ns))
        own.offset_ns = static_cast<int64_t>(boot->time) - static_cast<int64_t>(now_ns);
    }
  }

  static int64_t on_trace_clock(uint64_t time, uint64_t clock_id, Sequence& sequence) {
    const auto found = clock_id < kFirstOwnClock ? sequence.clocks.end() : sequence.clocks.find(clock_id);
    if (found == sequence.clocks.end()) return static_cast<int64_t>(std::min<uint64_t>(time, INT64_MAX));
    Sequence::Clock& clock = found->second;
    if (clock.is_incremental) time = clock.now += time;
    const uint64_t ns = time * clock.unit_ns;
    if (ns > static_cast<uint64_t>(kMaxTimeNs)) return INT64_MAX;
    return static_cast<int64_t>(ns) + clock.offset_ns;
  }

  // ---- what events refer to

  void read_defaults(std::string_view bytes, Sequence& sequence) {
    each(bytes, [&](Fields& field) {
      if (field.tag() == kClockId) {
        sequence.default_clock = whole_number(field);
      } else if (field.tag() == kTrackEvent) {
        each(piece(field), [&](Fields& part) {
          if (part.tag() != 11) return part.skip();
          sequence.default_track = whole_number(part);
        });
      } else {
        field.skip();
      }
    });
  }

  void read_interned(std::string_view bytes, Sequence& sequence) {
    each(bytes, [&](Fields& field) {
      std::unordered_map<uint64_t, std::string>* table = nullptr;
      switch (field.tag()) {
        case 1: table = &sequence.categories; break;
        case 2: table = &sequence.names; break;
        case 3: table = &sequence.keys; break;
        case 29: table = &sequence.texts; break;
        default: field.skip(); return;
      }
      uint64_t id = 0;
      std::string_view text;
      each(piece(field), [&](Fields& part) {
        if (part.tag() == 1) {
          id = whole_number(part);
        } else if (part.tag() == 2) {
          text = piece(part);
        } else {
          part.skip();
        }
      });
      (*table)[id] = std::string(text);
    });
  }

  void read_descriptor(std::string_view bytes) {
    uint64_t uuid = 0;
    Track track;
    each(bytes, [&](Fields& field) {
      switch (field.tag()) {
        case 1: uuid = whole_number(field); break;
        case 2:
        case 10:
        case 13: track.name = piece(field); break;  // name, static_name, atrace_name
        case 3:
          track.is_process = true;
          each(piece(field), [&](Fields& part) {
            if (part.tag() == 1) {
              track.pid = static_cast<int32_t>(whole_number(part));
            } else if (part.tag() == 6) {
              track.process_name = piece(part);
            } else {
              part.skip();
            }
          });
          break;
        case 4:
          track.is_thread = true;
          each(piece(field), [&](Fields& part) {
            if (part.tag() == 1) {
              track.pid = static_cast<int32_t>(whole_number(part));
            } else if (part.tag() == 2) {
              track.tid = static_cast<int64_t>(whole_number(part));
            } else if (part.tag() == 5) {
              track.thread_name = piece(part);
            } else {
              part.skip();
            }
          });
          break;
        case 5: track.parent = whole_number(field); break;
        case 8:
          track.is_counter = true;
          field.skip();
          break;
        default: field.skip();
      }
    });
    tracks_[uuid] = std::move(track);
    places_.erase(uuid);
  }

  void read_compressed(std::string_view bytes) {
    std::string out;
    std::string window(1 << 20, '\0');
    isal_inflate_ptr_ = std::make_unique<inflate_state>();
    inflate_state& state = *isal_inflate_ptr_;
    isal_inflate_init(&state);
    state.crc_flag = ISAL_ZLIB;
    state.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
    state.avail_in = static_cast<uint32_t>(std::min<size_t>(bytes.size(), UINT32_MAX));
    while (state.block_state != ISAL_BLOCK_FINISH) {
      state.next_out = reinterpret_cast<uint8_t*>(window.data());
      state.avail_out = static_cast<uint32_t>(window.size());
      const int result = isal_inflate(&state);
      const size_t got = window.size() - state.avail_out;
      out.append(window, 0, got);
      unpacked_bytes_ += got;
      if (result != ISAL_DECOMP_OK || got == 0 || unpacked_bytes_ > most_bytes_) break;
    }
    if (state.block_state != ISAL_BLOCK_FINISH) ++part_.losses[Stat::kCompressionDamaged];
    read_packets(out, 1);
  }

  // ---- events

  void read_event(std::string_view bytes, const Sequence& sequence, int64_t time_ns) {
    TrackEvent event{.track = sequence.default_track};
    const auto look_up = [&](const std::unordered_map<uint64_t, std::string>& table, uint64_t id) {
      const auto found = table.find(id);
      if (found != table.end()) return found->second;
      ++part_.losses[Stat::kNameMissing];
      return std::string();
    };
    each(bytes, [&](Fields& field) {
      switch (field.tag()) {
        case 3:
          if (field.wire_type() == Wire::length_delimited) {
            for (const uint64_t id : field.get_packed_uint64()) event.category = look_up(sequence.categories, id);
          } else {
            event.category = look_up(sequence.categories, whole_number(field));
          }
          break;
        case 4: read_annotation(piece(field), sequence, event); break;
        case 9: event.type = static_cast<int64_t>(whole_number(field)); break;
        case 10: event.name = look_up(sequence.names, whole_number(field)); break;
        case 11: event.track = whole_number(field); break;
        case 22: event.category = piece(field); break;
        case 23: event.name = piece(field); break;
        case 30:
          event.value = static_cast<double>(static_cast<int64_t>(whole_number(field)));
          event.has_value = true;
          break;
        case 44:
          if (field.wire_type() != Wire::fixed64) return field.skip();
          event.value = field.get_double();
          event.has_value = true;
          break;
        case 36:
        case 47: each_id(field, event.flows); break;
        case 42:
        case 48: each_id(field, event.ending_flows); break;
        default: field.skip();
      }
    });
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

  static void each_id(Fields& field, std::vector<uint64_t>& out) {
    if (field.wire_type() == Wire::length_delimited) {
      const auto view = field.get_view();
      for (size_t at = 0; at + 8 <= view.size(); at += 8) {  // packed fixed64
        uint64_t id = 0;
        std::copy_n(view.data() + at, 8, reinterpret_cast<char*>(&id));
        out.push_back(id);
      }
      return;
    }
    out.push_back(whole_number(field));
  }

  void read_annotation(std::string_view bytes, const Sequence& sequence, TrackEvent& event) {
    Annotation out;
    each(bytes, [&](Fields& field) {
      switch (field.tag()) {
        case 1: {
          const auto found = sequence.keys.find(whole_number(field));
          if (found != sequence.keys.end()) out.key = found->second;
          break;
        }
        case 10: out.key = piece(field); break;
        case 2: out.json = whole_number(field) != 0 ? "true" : "false"; break;
        case 3:
        case 7: out.json = std::to_string(whole_number(field)); break;
        case 4: out.json = std::to_string(static_cast<int64_t>(whole_number(field))); break;
        case 5:
          if (field.wire_type() != Wire::fixed64) return field.skip();
          if (const double value = field.get_double(); std::isfinite(value)) {
            JsonWriter json;
            json.value(value);
            out.json = json.take();
          }
          break;
        case 6: out.json = list_or_text(piece(field)); break;
        case 9: out.json = piece(field); break;
        case 17: {
          const auto found = sequence.texts.find(whole_number(field));
          if (found != sequence.texts.end()) out.json = list_or_text(found->second);
          break;
        }
        default: field.skip();
      }
    });
    if (!out.key.empty() && !out.json.empty()) event.annotations.push_back(std::move(out));
  }

  // Lists travel as texts: "[1, 2, 3]" stands for the list.
  static std::string list_or_text(std::string_view text) {
    return text.starts_with('[') && text.ends_with(']') ? std::string(text) : quoted_json(text);
  }

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
      const std::string device = number_behind(around->name, {"GPU ", "TPU ", "NPU ", "XPU ", "HPU ", "MTIA "});
      place.pid = around->is_process || around->is_thread ? std::to_string(around->pid)
                  : !device.empty()                       ? device
                                                          : quoted_json(around->name.empty() ? "trace" : around->name);
      const std::string stream = number_behind(found->second.name, {"stream ", "Stream "});
      place.tid = !stream.empty() ? stream : quoted_json(found->second.name);
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
    const std::string name = quoted_json(event.name);
    const std::string category = quoted_json(event.category);
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
  std::map<uint64_t, Sequence> sequences_;
  std::map<uint64_t, Track> tracks_;
  std::unordered_map<uint64_t, Place> places_;
  std::map<uint64_t, Nest> open_;
  std::unordered_map<uint64_t, bool> flow_from_op_;
  std::vector<FlowEnd> ends_;
  std::unique_ptr<inflate_state> isal_inflate_ptr_;
  int64_t last_ns_ = INT64_MIN;
  uint64_t unpacked_bytes_ = 0;
  uint64_t most_bytes_ = 0;
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
