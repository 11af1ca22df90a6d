#include "format/dump.h"

#include <cstdio>
#include <unordered_map>
#include <vector>

#include "base/json_writer.h"
#include "format/chunk.h"
#include "format/device.h"
#include "format/events.h"
#include "format/notes.h"

namespace firelane::format {
namespace {

std::string_view name_of_group(Record kind) {
  switch (kind) {
    case Record::kEndPython: return "python";
    case Record::kEndModule: return "module";
    case Record::kEndCall: return "call";
    default: return "op";
  }
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

// "1:0 address 4096 bytes 2048 stream 0 pool 0 flags 0 blocks 512:2 1536:0"
std::string segment_text(const SegmentNote& n) {
  const SegmentFields& s = n.segment;
  std::string out = std::to_string(s.device_type) + ":" + std::to_string(s.device) + " address " +
                    std::to_string(s.address) + " bytes " + std::to_string(s.bytes) + " stream " +
                    std::to_string(s.stream) + " pool " + std::to_string(s.pool) +
                    (s.is_expandable ? " expandable" : "") + (s.is_large ? " large" : "") + " blocks";
  SegmentBlocks blocks(n.blocks);
  SegmentBlock block;
  while (blocks.next(block)) {
    out += " " + std::to_string(block.bytes) + ":" + std::to_string(static_cast<int>(block.state));
  }
  return out;
}

// Each memory record says where it belongs, though the file says it only where that changes.
std::string place_text(const MemoryFields& m) {
  if (!m.place) return "";
  return " stream " + std::to_string(m.place->stream) + " pool " + std::to_string(m.place->pool) +
         (m.place->is_mapped ? " mapped" : "");
}

class Dumper {
 public:
  explicit Dumper(const DumpOptions& options) : options_(options) {}

  void chunk(const Chunk& chunk) {
    if (options_.chunks) {
      line("chunk " + std::to_string(chunk.number) + " at " + std::to_string(chunk.offset) + " kind " +
           std::to_string(static_cast<int>(chunk.kind)) + ", " + std::to_string(chunk.payload.size()) + " bytes");
    }
    if (chunk.kind == ChunkKind::kNotes) notes(chunk.payload);
    if (chunk.kind == ChunkKind::kEvents) events(chunk.payload);
    if (chunk.kind == ChunkKind::kDevice) device(chunk.payload);
  }
  void line(const std::string& text) { out_.append(text).push_back('\n'); }
  std::string take() { return std::move(out_); }

 private:
  void notes(std::string_view payload);
  void events(std::string_view payload);
  void device(std::string_view payload);
  void define(EventsReader& reader);
  template <typename Row>
  void device_rows(DeviceReader& reader, std::string_view name, size_t text_field);
  void metric_rows(DeviceReader& reader);
  std::string describe(const EventRecord& record) const;
  std::string text(uint32_t id) const {
    const auto found = texts_.find(id);
    if (id == 0) return "\"\"";
    if (found == texts_.end()) return "?" + std::to_string(id);
    std::string out = "\"";
    append_json_escaped(out, found->second);
    return out + "\"";
  }
  std::string since_start(uint64_t ticks) const { return std::to_string(static_cast<int64_t>(ticks - start_ticks_)); }
  std::string text_of(const ProcessNote& n) const;
  std::string text_of(const ClockNote& n) const;
  std::string text_of(const OptionNote& n) const;
  std::string text_of(const MetadataNote& n) const;
  std::string text_of(const StepNote& n) const;
  std::string text_of(const StepThreadNote& n) const;
  std::string text_of(const CostNote& n) const;
  std::string text_of(const LossNote& n) const;
  std::string text_of(const StoppedNote& n) const;
  std::string text_of(const PauseNote& n) const;
  std::string text_of(const ThreadNote& n) const;
  std::string text_of(const DeviceClockNote& n) const;
  std::string text_of(const OverloadNote& n) const;
  std::string text_of(const SegmentNote& n) const;
  std::string text_of(const DeviceWindowNote& n) const;
  std::string text_of(const LevelNote& n) const;

  DumpOptions options_;
  std::string out_;
  uint64_t start_ticks_ = 0;
  std::unordered_map<uint32_t, std::string> texts_;
};

void Dumper::notes(std::string_view payload) {
  NotesReader reader(payload);
  NoteItem item;
  while (reader.next(item)) {
    const ClockNote* const clock = std::get_if<ClockNote>(&item);
    if (clock != nullptr && clock->role == PairRole::kStart) start_ticks_ = clock->pair.ticks;
    if (options_.notes) line("note " + std::visit([&](const auto& note) { return text_of(note); }, item));
  }
}

std::string Dumper::text_of(const ProcessNote& n) const {
  return "process " + std::to_string(n.pid) + " host " + std::string(n.host) + " ticks per second " +
         number_text(n.ticks_per_second) + " command " + std::string(n.command);
}
std::string Dumper::text_of(const ClockNote& n) const {
  return "clocks " + std::to_string(static_cast<int>(n.role)) + " ticks " + since_start(n.pair.ticks) + " monotonic " +
         std::to_string(n.pair.monotonic_ns) + " unix " + std::to_string(n.pair.unix_ns);
}
std::string Dumper::text_of(const OptionNote& n) const {
  return "option " + std::string(n.key) + " = " + std::string(n.value);
}
std::string Dumper::text_of(const MetadataNote& n) const {
  return "metadata " + std::string(n.key) + " = " + std::string(n.json);
}
std::string Dumper::text_of(const StepNote& n) const {
  return "step " + std::to_string(n.number) + " phase " + std::to_string(static_cast<int>(n.phase)) + " start " +
         since_start(n.start_ticks) + " ticks " + std::to_string(n.duration_ticks) +
         (n.device_ns >= 0 ? " device " + std::to_string(n.device_ns) + " ns" : "");
}
std::string Dumper::text_of(const StepThreadNote& n) const {
  return "step's thread ran " + std::to_string(n.ran_ns) + " ns waited " + std::to_string(n.waited_ns) + " ns";
}
std::string Dumper::text_of(const CostNote& n) const {
  return "cost " + std::string(n.event) + " " + number_text(n.ns) + " ns";
}
std::string Dumper::text_of(const LossNote& n) const {
  return "loss " + std::to_string(n.count) + " " + std::string(n.reason);
}
std::string Dumper::text_of(const StoppedNote& n) const { return "stopped " + std::string(n.reason); }
std::string Dumper::text_of(const PauseNote& n) const {
  return (n.is_resumed ? "resumed " : "paused ") + since_start(n.ticks);
}
std::string Dumper::text_of(const ThreadNote& n) const {
  return "thread " + std::to_string(n.index) + " id " + std::to_string(n.thread_id) + " name " + std::string(n.name);
}
std::string Dumper::text_of(const DeviceClockNote& n) const {
  return "device clock " + std::to_string(static_cast<int>(n.role)) + " ticks " + since_start(n.ticks) + " device ns " +
         std::to_string(n.device_ns) + " within ticks " + std::to_string(n.width_ticks);
}
std::string Dumper::text_of(const OverloadNote& n) const {
  return "overload of text " + std::to_string(n.text_id) + " " + std::string(n.overload);
}
std::string Dumper::text_of(const SegmentNote& n) const {
  return "segment at " + since_start(n.ticks) + " of " + segment_text(n);
}
std::string Dumper::text_of(const DeviceWindowNote& n) const {
  return std::string("device window ") + (n.is_closed ? "closed" : "opened") + " at device ns " +
         std::to_string(n.device_ns);
}
std::string Dumper::text_of(const LevelNote& n) const {
  return std::string("level ") + (n.level == RecordLevel::kLight ? "light" : "full") + " from " + since_start(n.ticks);
}

void Dumper::define(EventsReader& reader) {
  std::vector<std::string_view> texts;
  uint32_t first = 0;
  if (!reader.read_definitions(first, texts)) return line("damaged definitions");
  for (const std::string_view t : texts) texts_[first++] = t;
}

// A row is its numbers, in the order of the struct in format/device.h.
template <typename Row>
void Dumper::device_rows(DeviceReader& reader, std::string_view name, size_t text_field) {
  Row row;
  while (reader.next(row)) {
    const auto fields = std::bit_cast<std::array<int64_t, sizeof(Row) / sizeof(int64_t)>>(row);
    std::string out(name);
    for (size_t i = 0; i < fields.size(); ++i) {
      const bool is_time = i == 0 && Row::kTable != DeviceTable::kEvent;
      if (is_time && !options_.times) continue;
      out += i == text_field ? " " + text(static_cast<uint32_t>(fields[i])) : " " + std::to_string(fields[i]);
    }
    line(out);
  }
}

void Dumper::metric_rows(DeviceReader& reader) {
  DeviceMetricRow row;
  while (reader.next(row)) {
    std::string out = "metric";
    if (options_.times) out += " " + std::to_string(row.start_ns);
    out += " " + std::to_string(row.duration_ns) + " " + std::to_string(row.device) + " " +
           text(static_cast<uint32_t>(row.name)) + " = " + number_text(std::bit_cast<double>(row.value));
    line(out);
  }
}

void Dumper::device(std::string_view payload) {
  constexpr size_t kNone = SIZE_MAX;
  EventsReader definitions(payload, start_ticks_);
  define(definitions);
  DeviceReader reader(definitions.rest());
  while (reader.next_table()) {
    switch (reader.table()) {
      case DeviceTable::kKernel: device_rows<DeviceKernelRow>(reader, "kernel", 6); break;
      case DeviceTable::kCopy: device_rows<DeviceCopyRow>(reader, "copy", kNone); break;
      case DeviceTable::kSet: device_rows<DeviceSetRow>(reader, "set", kNone); break;
      case DeviceTable::kSync: device_rows<DeviceSyncRow>(reader, "sync", kNone); break;
      case DeviceTable::kEvent: device_rows<DeviceEventRow>(reader, "event", kNone); break;
      case DeviceTable::kCall: device_rows<DeviceCallRow>(reader, "call", 4); break;
      case DeviceTable::kOverhead: device_rows<DeviceOverheadRow>(reader, "overhead", kNone); break;
      case DeviceTable::kMetric: metric_rows(reader); break;
      default: line("unknown device table");
    }
  }
  if (reader.damaged()) line("damaged device rows");
}

void Dumper::events(std::string_view payload) {
  EventsReader reader(payload, start_ticks_);
  define(reader);
  SectionReader section;
  EventRecord record;
  while (reader.next_section(section)) {
    while (section.next(record)) {
      std::string out = "thread " + std::to_string(section.thread_index()) + " ";
      if (record.kind == Record::kExtended && record.number == static_cast<int64_t>(Extended::kMemoryPlace)) continue;
      const bool timed =
          record.kind != Record::kAttribute && record.kind != Record::kThreadName && record.kind != Record::kExtended;
      if (options_.times && timed) out += "+" + std::to_string(static_cast<int64_t>(record.ticks - start_ticks_)) + " ";
      line(out + describe(record));
    }
    if (section.damaged()) line("damaged section");
  }
  if (reader.damaged()) line("damaged events");
}

std::string Dumper::describe(const EventRecord& r) const {
  const std::string scope = std::to_string(static_cast<int>(r.scope));
  switch (r.kind) {
    case Record::kBegin: return "begin " + text(r.text) + " scope " + scope;
    case Record::kBeginSequence:
      return "begin " + text(r.text) + " scope " + scope + " sequence " + std::to_string(r.number);
    case Record::kEnd:
    case Record::kEndPython:
    case Record::kEndModule:
    case Record::kEndCall: return "end " + std::string(name_of_group(r.kind));
    case Record::kSlice: return "slice " + text(r.text) + " scope " + scope + " ticks " + std::to_string(r.number);
    case Record::kAttribute:
      return "attribute " + std::to_string(static_cast<int>(r.attribute)) + " = " +
             (is_text(r.attribute) ? text(r.text) : std::to_string(r.number));
    case Record::kMemory:
      return "memory " + std::to_string(static_cast<int>(r.action)) + " address " + std::to_string(r.memory.address) +
             " bytes " + std::to_string(r.memory.bytes) + " allocated " +
             std::to_string(r.memory.total_allocated_bytes) + " reserved " +
             std::to_string(r.memory.total_reserved_bytes) + " device " + std::to_string(r.memory.device_type) + ":" +
             std::to_string(r.memory.device) + place_text(r.memory);
    case Record::kInstant: return "instant " + text(r.text);
    case Record::kCounter: return "counter " + text(r.text) + " = " + number_text(r.value);
    case Record::kAsyncBegin: return "async begin " + text(r.text) + " id " + std::to_string(r.number);
    case Record::kAsyncEnd: return "async end id " + std::to_string(r.number);
    case Record::kLost:
      return "lost " + std::to_string(r.number) + " ends " + std::to_string(r.lost_ends[0]) + " " +
             std::to_string(r.lost_ends[1]) + " " + std::to_string(r.lost_ends[2]) + " " +
             std::to_string(r.lost_ends[3]);
    case Record::kThreadName: return "thread name " + text(r.text);
    case Record::kExtended: return "extended record " + std::to_string(r.number);
  }
  return "unknown record";
}

}  // namespace

Result<std::string> dump_lane(std::string_view file, const std::string& name, const DumpOptions& options) {
  ChunkReader reader(file);
  FL_TRY_VOID(reader.read_header(name));
  Dumper dumper(options);
  Chunk chunk;
  while (reader.next(chunk)) dumper.chunk(chunk);
  if (reader.damaged_chunks() > 0) dumper.line("damaged chunks: " + std::to_string(reader.damaged_chunks()));
  dumper.line(reader.clean_end() ? "clean end" : "no end: the recording was cut off");
  return dumper.take();
}

}  // namespace firelane::format
