#include "format/notes.h"

namespace firelane::format {

void NotesWriter::item(Note tag, const std::string& body) {
  append_varint(payload_, static_cast<uint64_t>(tag));
  append_text(payload_, body);
}

void NotesWriter::two_texts(Note tag, std::string_view a, std::string_view b) {
  std::string body;
  append_text(body, a);
  append_text(body, b);
  item(tag, body);
}

void NotesWriter::process(uint32_t pid, TickSource source, double ticks_per_second, std::string_view host,
                          std::string_view command) {
  std::string body;
  append_varint(body, pid);
  append_fixed(body, static_cast<uint8_t>(source));
  append_fixed(body, ticks_per_second);
  append_text(body, host);
  append_text(body, command);
  item(Note::kProcess, body);
}

void NotesWriter::clock_pair(PairRole role, const ClockPair& pair) {
  std::string body;
  append_fixed(body, static_cast<uint8_t>(role));
  append_fixed(body, pair.ticks);
  append_fixed(body, pair.monotonic_ns);
  append_fixed(body, pair.unix_ns);
  item(Note::kClockPair, body);
}

void NotesWriter::step(int64_t number, StepPhase phase, uint64_t start_ticks, uint64_t duration_ticks,
                       int64_t device_ns) {
  std::string body;
  append_zigzag(body, number);
  append_fixed(body, static_cast<uint8_t>(phase));
  append_fixed(body, start_ticks);
  append_varint(body, duration_ticks);
  if (device_ns >= 0) append_varint(body, static_cast<uint64_t>(device_ns));
  item(Note::kStep, body);
}

void NotesWriter::step_thread(int64_t ran_ns, int64_t waited_ns) {
  std::string body;
  append_varint(body, static_cast<uint64_t>(ran_ns));
  append_varint(body, static_cast<uint64_t>(waited_ns));
  item(Note::kStepThread, body);
}

void NotesWriter::cost(std::string_view kind, double ns_per_event) {
  std::string body;
  append_text(body, kind);
  append_fixed(body, ns_per_event);
  item(Note::kCost, body);
}

void NotesWriter::loss(std::string_view reason, uint64_t count) {
  std::string body;
  append_text(body, reason);
  append_varint(body, count);
  item(Note::kLoss, body);
}

void NotesWriter::overload(uint32_t text_id, std::string_view overload) {
  std::string body;
  append_varint(body, text_id);
  append_text(body, overload);
  item(Note::kOverload, body);
}

void NotesWriter::segment(uint64_t ticks, const SegmentFields& s, std::span<const SegmentBlock> blocks) {
  std::string body;
  append_fixed(body, ticks);
  append_varint(body, uint64_t{s.device_type} << 8 | static_cast<uint8_t>(s.device + 1));
  append_varint(body, s.address);
  append_varint(body, s.bytes);
  append_varint(body, s.stream);
  append_varint(body, s.pool);
  append_fixed(body, static_cast<uint8_t>((s.is_expandable ? 1 : 0) | (s.is_large ? 2 : 0)));
  for (const SegmentBlock& block : blocks) append_varint(body, block.bytes << 2 | static_cast<uint64_t>(block.state));
  item(Note::kSegment, body);
}

void NotesWriter::stopped(std::string_view reason) {
  std::string body;
  append_text(body, reason);
  item(Note::kStopped, body);
}

void NotesWriter::pause(bool resumed, uint64_t ticks) {
  std::string body;
  append_fixed(body, static_cast<uint8_t>(resumed ? 1 : 0));
  append_fixed(body, ticks);
  item(Note::kPause, body);
}

void NotesWriter::level(RecordLevel level, uint64_t ticks) {
  std::string body;
  append_fixed(body, static_cast<uint8_t>(level));
  append_fixed(body, ticks);
  item(Note::kLevel, body);
}

void NotesWriter::thread(uint32_t index, uint32_t thread_id, std::string_view name) {
  std::string body;
  append_varint(body, index);
  append_varint(body, thread_id);
  append_text(body, name);
  item(Note::kThread, body);
}

void NotesWriter::device_clock(PairRole role, uint64_t ticks, int64_t device_ns, uint64_t width_ticks) {
  std::string body;
  append_fixed(body, static_cast<uint8_t>(role));
  append_fixed(body, ticks);
  append_fixed(body, device_ns);
  append_fixed(body, width_ticks);
  item(Note::kDeviceClock, body);
}

void NotesWriter::device_window(bool closed, int64_t device_ns) {
  std::string body;
  append_fixed(body, static_cast<uint8_t>(closed ? 1 : 0));
  append_fixed(body, device_ns);
  item(Note::kDeviceWindow, body);
}

namespace {

SegmentNote read_segment(ByteReader& body) {
  SegmentNote note;
  SegmentFields& s = note.segment;
  note.ticks = body.fixed<uint64_t>();
  const uint64_t device = body.varint();
  s.device_type = static_cast<uint8_t>(device >> 8);
  s.device = static_cast<int8_t>(static_cast<int>(device & 0xFF) - 1);
  s.address = body.varint();
  s.bytes = body.varint();
  s.stream = body.varint();
  s.pool = body.varint();
  const auto flags = body.fixed<uint8_t>();
  s.is_expandable = (flags & 1) != 0;
  s.is_large = (flags & 2) != 0;
  note.blocks = body.bytes(body.left());
  return note;
}

StepNote read_step(ByteReader& body) {
  StepNote note{.number = body.signed_varint(),
                .phase = static_cast<StepPhase>(body.fixed<uint8_t>()),
                .start_ticks = body.fixed<uint64_t>(),
                .duration_ticks = body.varint()};
  if (!body.empty()) note.device_ns = static_cast<int64_t>(body.varint());
  return note;
}

ClockNote read_clock(ByteReader& body) {
  ClockNote note{.role = static_cast<PairRole>(body.fixed<uint8_t>())};
  note.pair.ticks = body.fixed<uint64_t>();
  note.pair.monotonic_ns = body.fixed<int64_t>();
  note.pair.unix_ns = body.fixed<int64_t>();
  return note;
}

// Fields of a braced list are read in the order in which they are written.
NoteItem read_note(Note tag, ByteReader& body) {
  switch (tag) {
    case Note::kProcess:
      return ProcessNote{.pid = static_cast<uint32_t>(body.varint()),
                         .source = static_cast<TickSource>(body.fixed<uint8_t>()),
                         .ticks_per_second = body.fixed<double>(),
                         .host = body.text(),
                         .command = body.text()};
    case Note::kClockPair: return read_clock(body);
    case Note::kOption: return OptionNote{.key = body.text(), .value = body.text()};
    case Note::kMetadata: return MetadataNote{.key = body.text(), .json = body.text()};
    case Note::kStep: return read_step(body);
    case Note::kCost: return CostNote{.event = body.text(), .ns = body.fixed<double>()};
    case Note::kLoss: return LossNote{.reason = body.text(), .count = body.varint()};
    case Note::kStopped: return StoppedNote{.reason = body.text()};
    case Note::kPause: return PauseNote{.is_resumed = body.fixed<uint8_t>() != 0, .ticks = body.fixed<uint64_t>()};
    case Note::kThread:
      return ThreadNote{.index = static_cast<uint32_t>(body.varint()),
                        .thread_id = static_cast<uint32_t>(body.varint()),
                        .name = body.text()};
    case Note::kDeviceClock:
      return DeviceClockNote{.role = static_cast<PairRole>(body.fixed<uint8_t>()),
                             .ticks = body.fixed<uint64_t>(),
                             .device_ns = body.fixed<int64_t>(),
                             .width_ticks = body.fixed<uint64_t>()};
    case Note::kOverload: return OverloadNote{.text_id = body.varint(), .overload = body.text()};
    case Note::kSegment: return read_segment(body);
    case Note::kDeviceWindow:
      return DeviceWindowNote{.is_closed = body.fixed<uint8_t>() != 0, .device_ns = body.fixed<int64_t>()};
    case Note::kStepThread:
      return StepThreadNote{.ran_ns = static_cast<int64_t>(body.varint()),
                            .waited_ns = static_cast<int64_t>(body.varint())};
    case Note::kLevel: break;
  }
  const bool is_light = body.fixed<uint8_t>() == static_cast<uint8_t>(RecordLevel::kLight);
  return LevelNote{.level = is_light ? RecordLevel::kLight : RecordLevel::kFull, .ticks = body.fixed<uint64_t>()};
}

}  // namespace

bool NotesReader::next(NoteItem& item) {
  while (reader_.ok() && !reader_.empty()) {
    const uint64_t tag = reader_.varint();
    const std::string_view bytes = reader_.text();
    if (!reader_.ok()) {
      ++damaged_;
      return false;
    }
    if (tag == 0 || tag > static_cast<uint64_t>(Note::kStepThread)) continue;
    ByteReader body(bytes);
    item = read_note(static_cast<Note>(tag), body);
    if (body.ok()) return true;
    ++damaged_;
  }
  return false;
}

}  // namespace firelane::format
