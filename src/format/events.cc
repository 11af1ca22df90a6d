#include "format/events.h"

#include <array>
#include <bit>

namespace firelane::format {
namespace {

constexpr std::array kScopeOfCode = {Scope::kFunction,
                                     Scope::kBackwardFunction,
                                     Scope::kTorchScriptFunction,
                                     Scope::kKernelFunctionDtype,
                                     Scope::kCustomClass,
                                     Scope::kBuildFeature,
                                     Scope::kLiteInterpreter,
                                     Scope::kUser,
                                     Scope::kStaticRuntimeOp,
                                     Scope::kStaticRuntimeModel,
                                     Scope::kPythonFunction,
                                     Scope::kPythonBuiltin,
                                     Scope::kPythonGc,
                                     Scope::kModule,
                                     Scope::kRuntime};
constexpr uint8_t kExplicitScope = 15;
static_assert(kScopeOfCode.size() == kExplicitScope);

constexpr std::array<uint8_t, 64> make_codes() {
  std::array<uint8_t, 64> codes{};
  codes.fill(kExplicitScope);
  for (size_t code = 0; code < kScopeOfCode.size(); ++code) {
    codes[static_cast<uint8_t>(kScopeOfCode[code])] = static_cast<uint8_t>(code);
  }
  return codes;
}
constexpr std::array<uint8_t, 64> kCodeOfScope = make_codes();

// Differences wrap, so that any number comes back whatever lay before it.
int64_t difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t sum(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }

}  // namespace

uint8_t scope_code(Scope scope) {
  const auto number = static_cast<uint8_t>(scope);
  return number < kCodeOfScope.size() ? kCodeOfScope[number] : kExplicitScope;
}

void SectionWriter::begin(uint32_t thread_index, uint32_t thread_id, uint64_t session_start_ticks,
                          uint64_t first_ticks) {
  thread_index_ = thread_index;
  thread_id_ = thread_id;
  first_ticks_ = static_cast<int64_t>(first_ticks - session_start_ticks);
  last_ticks_ = first_ticks;
  last_sequence_ = 0;
  last_memory_ = {.total_allocated_bytes = 0, .total_reserved_bytes = 0};
  tags_.clear();
  times_.clear();
  texts_.clear();
  numbers_.clear();
}

void SectionWriter::add(const EventRecord& record) {
  uint8_t variant = 0;
  switch (record.kind) {
    case Record::kBegin:
    case Record::kBeginSequence:
    case Record::kSlice:
    case Record::kAsyncBegin:
      variant = scope_code(record.scope);
      add_time(record.ticks);
      append_varint(texts_, record.text);
      if (variant == kExplicitScope) append_fixed(numbers_, static_cast<uint8_t>(record.scope));
      if (record.kind == Record::kBeginSequence) {
        append_zigzag(numbers_, difference(record.number, last_sequence_));
        last_sequence_ = record.number;
      } else if (record.kind != Record::kBegin) {
        append_varint(numbers_, static_cast<uint64_t>(record.number));
      }
      break;
    case Record::kEnd:
    case Record::kEndPython:
    case Record::kEndModule:
    case Record::kEndCall: add_time(record.ticks); break;
    case Record::kAttribute:
      variant = static_cast<uint8_t>(record.attribute) & 15;
      if (is_text(record.attribute)) {
        append_varint(texts_, record.text);
      } else {
        append_zigzag(numbers_, record.number);
      }
      break;
    case Record::kMemory:
      variant = static_cast<uint8_t>(record.action);
      add_memory(record);
      break;
    case Record::kInstant:
      add_time(record.ticks);
      append_varint(texts_, record.text);
      break;
    case Record::kCounter:
      add_time(record.ticks);
      append_varint(texts_, record.text);
      // Round values have zeros at the low end: swapped, the varint is short.
      append_varint(numbers_, __builtin_bswap64(std::bit_cast<uint64_t>(record.value)));
      break;
    case Record::kAsyncEnd:
      add_time(record.ticks);
      append_varint(numbers_, static_cast<uint64_t>(record.number));
      break;
    case Record::kLost:
      add_time(record.ticks);
      append_varint(numbers_, static_cast<uint64_t>(record.number));
      for (const uint16_t ends : record.lost_ends) append_varint(numbers_, ends);
      break;
    case Record::kThreadName: append_varint(texts_, record.text); break;
    case Record::kExtended: return;
  }
  tags_.push_back(static_cast<char>(variant << 4 | static_cast<uint8_t>(record.kind)));
}

void SectionWriter::add_place(const MemoryPlace& place) {
  std::string body;
  append_varint(body, place.stream);
  append_varint(body, place.pool);
  append_fixed(body, static_cast<uint8_t>(place.is_mapped ? 1 : 0));
  append_varint(numbers_, static_cast<uint64_t>(Extended::kMemoryPlace));
  append_text(numbers_, body);
  tags_.push_back(static_cast<char>(Record::kExtended));
}

void SectionWriter::add_memory(const EventRecord& record) {
  MemoryFields m = record.memory;
  if (m.place && m.place != last_memory_.place) add_place(*m.place);
  if (!m.place) m.place = last_memory_.place;
  add_time(record.ticks);
  append_zigzag(numbers_, static_cast<int64_t>(m.address - last_memory_.address));
  append_zigzag(numbers_, m.bytes);
  append_zigzag(numbers_, difference(m.total_allocated_bytes, sum(last_memory_.total_allocated_bytes, m.bytes)));
  append_zigzag(numbers_, difference(m.total_reserved_bytes, last_memory_.total_reserved_bytes));
  append_varint(numbers_, uint64_t{m.device_type} << 8 | static_cast<uint8_t>(m.device + 1));
  last_memory_ = m;
}

void SectionWriter::append_to(std::string& payload) const {
  append_varint(payload, thread_index_);
  append_varint(payload, thread_id_);
  append_zigzag(payload, first_ticks_);
  append_varint(payload, tags_.size());
  append_varint(payload, times_.size());
  append_varint(payload, texts_.size());
  append_varint(payload, numbers_.size());
  payload.append(tags_).append(times_).append(texts_).append(numbers_);
}

void append_definitions(std::string& payload, uint32_t first_id, const std::vector<std::string_view>& texts) {
  append_varint(payload, first_id);
  append_varint(payload, texts.size());
  for (const std::string_view text : texts) append_text(payload, text);
}

Scope SectionReader::read_scope(uint8_t code) {
  return code == kExplicitScope ? static_cast<Scope>(numbers_.fixed<uint8_t>()) : kScopeOfCode[code];
}

void SectionReader::read_memory(EventRecord& record) {
  MemoryFields& m = record.memory;
  m.address = last_memory_.address + static_cast<uint64_t>(numbers_.signed_varint());
  m.bytes = numbers_.signed_varint();
  m.total_allocated_bytes = sum(sum(last_memory_.total_allocated_bytes, m.bytes), numbers_.signed_varint());
  m.total_reserved_bytes = sum(last_memory_.total_reserved_bytes, numbers_.signed_varint());
  const uint64_t device = numbers_.varint();
  m.device_type = static_cast<uint8_t>(device >> 8);
  m.device = static_cast<int8_t>(static_cast<int>(device & 0xFF) - 1);
  m.place = m.device_type == 0 ? std::nullopt : last_memory_.place;  // the CPU's has none
  const std::optional<MemoryPlace> place = last_memory_.place;
  last_memory_ = m;
  last_memory_.place = place;
}

void SectionReader::read_extended(EventRecord& record) {
  record.number = static_cast<int64_t>(numbers_.varint());
  ByteReader body(numbers_.text());
  if (record.number != static_cast<int64_t>(Extended::kMemoryPlace)) return;
  MemoryPlace place{.stream = body.varint(), .pool = body.varint()};
  place.is_mapped = (body.fixed<uint8_t>() & 1) != 0;
  if (body.ok()) record.memory.place = last_memory_.place = place;
}

bool SectionReader::next(EventRecord& record) {
  if (left_ == 0 || damaged_) return false;
  --left_;
  const auto tag = tags_.fixed<uint8_t>();
  const auto variant = static_cast<uint8_t>(tag >> 4);
  record.kind = static_cast<Record>(tag & 15);
  const bool timed =
      record.kind != Record::kAttribute && record.kind != Record::kThreadName && record.kind != Record::kExtended;
  if (timed) record.ticks = last_ticks_ += static_cast<uint64_t>(times_.signed_varint());
  switch (record.kind) {
    case Record::kBegin:
    case Record::kBeginSequence:
    case Record::kSlice:
    case Record::kAsyncBegin:
      record.text = static_cast<uint32_t>(texts_.varint());
      record.scope = read_scope(variant);
      if (record.kind == Record::kBeginSequence) {
        record.number = last_sequence_ = sum(last_sequence_, numbers_.signed_varint());
      } else if (record.kind != Record::kBegin) {
        record.number = static_cast<int64_t>(numbers_.varint());
      }
      break;
    case Record::kEnd:
    case Record::kEndPython:
    case Record::kEndModule:
    case Record::kEndCall: break;
    case Record::kAttribute:
      record.attribute = static_cast<Attribute>(variant);
      if (is_text(record.attribute)) {
        record.text = static_cast<uint32_t>(texts_.varint());
      } else {
        record.number = numbers_.signed_varint();
      }
      break;
    case Record::kMemory:
      record.action = static_cast<MemoryAction>(variant);
      read_memory(record);
      break;
    case Record::kInstant:
    case Record::kThreadName: record.text = static_cast<uint32_t>(texts_.varint()); break;
    case Record::kCounter:
      record.text = static_cast<uint32_t>(texts_.varint());
      record.value = std::bit_cast<double>(__builtin_bswap64(numbers_.varint()));
      break;
    case Record::kAsyncEnd: record.number = static_cast<int64_t>(numbers_.varint()); break;
    case Record::kLost:
      record.number = static_cast<int64_t>(numbers_.varint());
      for (uint16_t& ends : record.lost_ends) ends = static_cast<uint16_t>(numbers_.varint());
      break;
    case Record::kExtended: read_extended(record); break;
  }
  damaged_ = !tags_.ok() || !times_.ok() || !texts_.ok() || !numbers_.ok();
  return !damaged_;
}

bool EventsReader::read_definitions(uint32_t& first_id, std::vector<std::string_view>& texts) {
  texts.clear();
  first_id = static_cast<uint32_t>(reader_.varint());
  const uint64_t count = reader_.varint();
  if (count > reader_.left()) return false;  // each takes a byte at least
  texts.reserve(count);
  for (uint64_t i = 0; i < count && reader_.ok(); ++i) texts.push_back(reader_.text());
  return reader_.ok();
}

bool EventsReader::next_section(SectionReader& section) {
  if (!reader_.ok() || reader_.empty()) return false;
  section = SectionReader();
  section.thread_index_ = static_cast<uint32_t>(reader_.varint());
  section.thread_id_ = static_cast<uint32_t>(reader_.varint());
  section.last_ticks_ = start_ticks_ + static_cast<uint64_t>(reader_.signed_varint());
  section.left_ = reader_.varint();
  const uint64_t times = reader_.varint();
  const uint64_t texts = reader_.varint();
  const uint64_t numbers = reader_.varint();
  section.tags_ = ByteReader(reader_.bytes(section.left_));
  section.times_ = ByteReader(reader_.bytes(times));
  section.texts_ = ByteReader(reader_.bytes(texts));
  section.numbers_ = ByteReader(reader_.bytes(numbers));
  section.last_memory_ = {.total_allocated_bytes = 0, .total_reserved_bytes = 0};
  return reader_.ok();
}

}  // namespace firelane::format
