// Makes a large trace from a small one: its events again and again, each copy later and with ids of its own.
//
//   make_trace small.json[.gz] large.json [MB = 1000]
//
// The text between the numbers is copied byte by byte, so the result looks as Kineto wrote it. Shifted are times,
// correlation, External id, Ev Idx, Sequence number, Record function id, Python ids, flow ids and ProfilerStep numbers:
// links inside a copy stay as they were, and no two copies share one. Processes, threads, streams, modules and
// addresses stay. The metadata events at the end of the file are written once; the span and the window's end grow.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "read_file.h"

namespace {

using firelane::bench::fail;

enum class Field : uint8_t {
  kTime,
  kDuration,
  kCorrelation,
  kExternal,
  kEvent,
  kSequence,
  kRecord,
  kPython,
  kFlow,
  kStep
};
constexpr size_t kFieldCount = 10;

struct Key {
  std::string_view text;  // what stands before the number
  Field field;
};
constexpr Key kKeys[] = {
    {"\"ts\": ", Field::kTime},
    {"\"dur\": ", Field::kDuration},
    {"\"correlation\": ", Field::kCorrelation},
    {"\"wait_on_cuda_event_record_corr_id\": ", Field::kCorrelation},
    {"\"External id\": ", Field::kExternal},
    {"\"Ev Idx\": ", Field::kEvent},
    {"\"Sequence number\": ", Field::kSequence},
    {"\"Record function id\": ", Field::kRecord},
    {"\"Python id\": ", Field::kPython},
    {"\"Python parent id\": ", Field::kPython},
    {"\"id\": ", Field::kFlow},
    {"\"ProfilerStep#", Field::kStep},
};

bool is_time(Field field) { return field == Field::kTime || field == Field::kDuration; }

// A number and the text before it, up to the number before that.
struct Piece {
  std::string_view before;
  int64_t value;  // times in ns
  Field field;
};

struct Pieces {
  std::vector<Piece> list;
  std::string_view rest;  // after the last number
};

// "12.345" is 12345 for a time; other numbers are whole.
int64_t parse_number(std::string_view text, bool time) {
  int64_t whole = 0;
  const char* const end = text.data() + text.size();
  const char* at = std::from_chars(text.data(), end, whole).ptr;
  if (!time) return whole;
  if (at < end) ++at;  // the dot
  for (int digit = 0; digit < 3; ++digit) whole = whole * 10 + (at < end ? *at++ - '0' : 0);
  return whole;
}

void append_number(std::string& out, int64_t value, bool time) {
  char digits[24];
  char* const end = std::to_chars(digits, digits + sizeof(digits), time ? value / 1000 : value).ptr;
  out.append(digits, end);
  if (!time) return;
  const auto digit = [&](int64_t divisor) { return static_cast<char>('0' + value / divisor % 10); };
  out += {'.', digit(100), digit(10), digit(1)};
}

Pieces split(std::string_view text) {
  Pieces pieces;
  size_t copied = 0;
  for (size_t quote = text.find('"'); quote != std::string_view::npos; quote = text.find('"', quote + 1)) {
    for (const Key& key : kKeys) {
      if (!text.substr(quote, key.text.size()).starts_with(key.text)) continue;
      const size_t begin = quote + key.text.size();
      const size_t end = text.find_first_not_of("-.0123456789", begin);
      if (end == begin) break;  // null
      const int64_t value = parse_number(text.substr(begin, end - begin), is_time(key.field));
      pieces.list.push_back({text.substr(copied, begin - copied), value, key.field});
      copied = end;
      break;
    }
  }
  pieces.rest = text.substr(copied);
  return pieces;
}

// Ids of 0 and less mean "none", but for the index of the first event.
bool is_shifted(const Piece& piece) { return piece.value > 0 || piece.field == Field::kEvent; }

using Shifts = std::array<int64_t, kFieldCount>;

// How far one copy lies from the next: past everything that the events use.
Shifts stride_of(const Pieces& events) {
  Shifts low;
  Shifts high;
  low.fill(INT64_MAX);
  high.fill(0);
  int64_t time = 0;
  for (const Piece& piece : events.list) {
    if (!is_shifted(piece) && piece.field != Field::kDuration) continue;
    int64_t last = piece.value;
    if (piece.field == Field::kTime) time = last;
    size_t field = static_cast<size_t>(piece.field);
    if (piece.field == Field::kDuration) {
      field = static_cast<size_t>(Field::kTime);
      last += time;
    } else {
      low[field] = std::min(low[field], last);
    }
    high[field] = std::max(high[field], last);
  }
  Shifts stride{};
  for (size_t field = 0; field < kFieldCount; ++field) {
    if (high[field] > 0) stride[field] = high[field] - low[field] + 1;
  }
  stride[static_cast<size_t>(Field::kTime)] += 1'000'000;  // a millisecond between copies
  stride[static_cast<size_t>(Field::kDuration)] = 0;
  return stride;
}

void append_copy(std::string& out, const Pieces& events, const Shifts& stride, int64_t copy) {
  for (const Piece& piece : events.list) {
    out += piece.before;
    const int64_t shift = is_shifted(piece) ? copy * stride[static_cast<size_t>(piece.field)] : 0;
    append_number(out, piece.value + shift, is_time(piece.field));
  }
  out += events.rest;
}

// The metadata at the end: the profiler's span and the end of its window reach over all copies.
void append_tail(std::string& out, const Pieces& tail, int64_t total_shift_ns) {
  for (const Piece& piece : tail.list) {
    out += piece.before;
    const bool grows =
        piece.field == Field::kDuration ||
        (piece.field == Field::kTime && piece.before.find("Record Window End") != std::string_view::npos);
    append_number(out, piece.value + (grows ? total_shift_ns : 0), is_time(piece.field));
  }
  out += tail.rest;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("usage: make_trace small.json[.gz] large.json [MB]");
  const std::string content = firelane::bench::read_content(argv[1]);
  const std::string_view text = content;
  const uint64_t wanted_bytes = (argc > 3 ? std::stoull(argv[3]) : 1000) * 1'000'000;

  constexpr std::string_view kList = "\"traceEvents\": [";
  const size_t list = text.find(kList);
  const size_t metadata =
      list == std::string_view::npos ? list : text.find("\n  {\n    \"name\": \"process_name\"", list);
  if (metadata == std::string_view::npos) fail(std::string(argv[1]) + ": not laid out as Kineto does it");
  const std::string_view head = text.substr(0, list + kList.size());
  const Pieces events = split(text.substr(head.size(), metadata - head.size()));  // ends with the comma
  const Pieces tail = split(text.substr(metadata));
  const Shifts stride = stride_of(events);

  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(argv[2], "wb"), &std::fclose);
  if (!file) fail(std::string(argv[2]) + ": cannot be written");
  std::string out(head);
  uint64_t written = 0;
  int64_t copies = 0;
  const auto flush = [&] {
    if (std::fwrite(out.data(), 1, out.size(), file.get()) != out.size()) fail(std::string(argv[2]) + ": disk full?");
    written += out.size();
    out.clear();
  };
  while (written < wanted_bytes) {
    append_copy(out, events, stride, copies++);
    flush();
  }
  append_tail(out, tail, (copies - 1) * stride[static_cast<size_t>(Field::kTime)]);
  flush();
  std::printf("%s: %.0f MB, %lld copies of the events of %s\n", argv[2], static_cast<double>(written) / 1e6,
              static_cast<long long>(copies), argv[1]);
}
