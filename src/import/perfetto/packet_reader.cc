#include "import/perfetto/packet_reader.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "base/json_writer.h"
#include "import/protobuf_fields.h"

namespace firelane::importer::pftrace {

namespace {

using Wire = protozero::pbf_wire_type;
using Fields = Message;

uint64_t whole_number(Fields& field) {
  switch (field.wire_type()) {
    case Wire::varint: return field.get_uint64();
    case Wire::fixed64: return field.get_fixed64();
    case Wire::fixed32: return field.get_fixed32();
    default: field.skip(); return 0;
  }
}

class PacketReader {
 public:
  explicit PacketReader(const PacketContext& context)
      : handler_(context.handler),
        part_(context.part),
        base_time_ns_(context.base_time_ns),
        most_bytes_(context.most_bytes) {}

  void run(std::string_view bytes) { read_packets(bytes, 0); }

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
      read_packet(bytes_or_none(field), depth);
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
        case kTrackEvent: event = bytes_or_none(field); break;
        case kInternedData: data = bytes_or_none(field); break;
        case kDefaults: defaults = bytes_or_none(field); break;
        case kTrackDescriptor: descriptor = bytes_or_none(field); break;
        case kClockSnapshot: snapshot = bytes_or_none(field); break;
        case kCompressed: compressed = bytes_or_none(field); break;
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
      each(bytes_or_none(field), [&](Fields& part) {
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
    if (boot != nullptr && real != nullptr && is_small(boot->time) && is_small(real->time) && base_time_ns_ == 0)
      base_time_ns_ = static_cast<int64_t>(real->time) - static_cast<int64_t>(boot->time);
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
        each(bytes_or_none(field), [&](Fields& part) {
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
      each(bytes_or_none(field), [&](Fields& part) {
        if (part.tag() == 1) {
          id = whole_number(part);
        } else if (part.tag() == 2) {
          text = bytes_or_none(part);
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
        case 13: track.name = bytes_or_none(field); break;  // name, static_name, atrace_name
        case 3:
          track.is_process = true;
          each(bytes_or_none(field), [&](Fields& part) {
            if (part.tag() == 1) {
              track.pid = static_cast<int32_t>(whole_number(part));
            } else if (part.tag() == 6) {
              track.process_name = bytes_or_none(part);
            } else {
              part.skip();
            }
          });
          break;
        case 4:
          track.is_thread = true;
          each(bytes_or_none(field), [&](Fields& part) {
            if (part.tag() == 1) {
              track.pid = static_cast<int32_t>(whole_number(part));
            } else if (part.tag() == 2) {
              track.tid = static_cast<int64_t>(whole_number(part));
            } else if (part.tag() == 5) {
              track.thread_name = bytes_or_none(part);
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
    handler_.on_track(uuid, std::move(track));
  }

  void read_compressed(std::string_view bytes) {
    std::string out;
    std::string window(1 << 20, '\0');
    const auto kept = std::make_unique<inflate_state>();  // too large for the stack
    inflate_state& state = *kept;
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
        case 4: read_annotation(bytes_or_none(field), sequence, event); break;
        case 9: event.type = static_cast<int64_t>(whole_number(field)); break;
        case 10: event.name = look_up(sequence.names, whole_number(field)); break;
        case 11: event.track = whole_number(field); break;
        case 22: event.category = bytes_or_none(field); break;
        case 23: event.name = bytes_or_none(field); break;
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
    handler_.on_event(std::move(event), time_ns);
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
        case 10: out.key = bytes_or_none(field); break;
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
        case 6: out.json = list_or_text(bytes_or_none(field)); break;
        case 9: out.json = bytes_or_none(field); break;
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
    return text.starts_with('[') && text.ends_with(']') ? std::string(text) : json_text_of(text);
  }

  EventHandler& handler_;
  RawPart& part_;
  int64_t& base_time_ns_;
  uint64_t most_bytes_;
  uint64_t unpacked_bytes_ = 0;
  std::map<uint64_t, Sequence> sequences_;
};

}  // namespace

std::string json_text_of(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.take();
}

void read_packets(std::string_view bytes, const PacketContext& context) { PacketReader(context).run(bytes); }

}  // namespace firelane::importer::pftrace
