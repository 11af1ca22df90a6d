#include "import/lane/table_rows.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "format/table_chunk.h"

namespace firelane::importer {

namespace {

using format::TableColumn;

// "n42", "sSteps"
TraceId id_of(std::string_view text, RawPool& pool) {
  int64_t number = 0;
  if (text.starts_with('n') &&
      std::from_chars(text.data() + 1, text.data() + text.size(), number).ptr == text.data() + text.size()) {
    return {.number = number};
  }
  return pool.text_id(text.substr(std::min<size_t>(1, text.size())));
}

LaneId lane_of(std::string_view text, RawPool& pool) {
  const size_t between = text.find('\x1f');
  if (between == std::string_view::npos) return pool.lane(id_of(text, pool), {});
  return pool.lane(id_of(text.substr(0, between), pool), id_of(text.substr(between + 1), pool));
}

// What the texts of a column are in a field of this type: found once for all rows.
template <typename T>
std::vector<T> values_of(const TableColumn& column, RawPool& pool) {
  std::vector<T> values;
  for (const std::string& text : column.texts) {
    if constexpr (std::is_same_v<T, StringId>) {
      values.push_back(pool.strings.intern(text));
    } else if constexpr (std::is_same_v<T, LaneId>) {
      values.push_back(lane_of(text, pool));
    } else {
      const auto words = words_of(T{});
      const auto found = std::find(std::begin(words), std::end(words), text);
      values.push_back(found == std::end(words) ? T{} : static_cast<T>(found - std::begin(words)));
    }
  }
  return values;
}

template <typename T>
void set_all(const TableColumn& column, RawPool& pool, const auto& field, size_t rows) {
  if constexpr (std::is_integral_v<T>) {
    if (!column.texts.empty()) return;
    for (size_t row = 0; row < rows; ++row) field(row) = static_cast<T>(column.numbers[row]);
  } else {
    const std::vector<T> values = values_of<T>(column, pool);
    if (values.empty()) return;
    for (size_t row = 0; row < rows; ++row) field(row) = values[static_cast<size_t>(column.numbers[row])];
  }
}

// Calls visit("bytes", &RawMemory::bytes) for each field of a raw row.
#define FL_NAMED(type, name, use, meaning) visit(#name, [](auto& row) -> auto& { return row.name; });
#define FL_UNNAMED(type, name, use, meaning)
#define FL_EACH_NAMED(RawRow, FIELDS)                  \
  template <typename Visit>                            \
  void each_named(const RawRow*, const Visit& visit) { \
    FIELDS(FL_NAMED, FL_NAMED, FL_UNNAMED)             \
  }
FL_EACH_NAMED(RawMemory, FL_MEMORY_EVENTS)
FL_EACH_NAMED(RawAllocatorEvent, FL_ALLOCATOR_EVENTS)
FL_EACH_NAMED(RawAllocatorSegment, FL_ALLOCATOR_SEGMENTS)
FL_EACH_NAMED(RawAllocatorBlock, FL_ALLOCATOR_BLOCKS)
#undef FL_EACH_NAMED
#undef FL_NAMED
#undef FL_UNNAMED

// Every table has these; with fewer, a row would take hundreds of times its bytes in the file.
constexpr std::string_view kLeastColumns[] = {"time_ns", "device_type", "device", "address", "bytes"};

const TableColumn* find_column(const format::TableChunk& chunk, std::string_view name) {
  for (const TableColumn& column : chunk.columns) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

template <typename RawRow>
void add_rows(const format::TableChunk& chunk, RawPool& pool, RawVector<RawRow>& out, LossCounts& losses) {
  for (const std::string_view name : kLeastColumns) {
    if (find_column(chunk, name) != nullptr) continue;
    ++losses[Stat::kLaneChunkDamaged];
    return;
  }
  std::vector<RawRow> made(static_cast<size_t>(chunk.rows));
  if (made.empty()) return;
  each_named(made.data(), [&](std::string_view name, const auto& field) {
    using T = std::decay_t<decltype(field(made[0]))>;
    const TableColumn* const column = find_column(chunk, name);
    if (name == "source" || column == nullptr) return;
    set_all<T>(*column, pool, [&](size_t row) -> T& { return field(made[row]); }, made.size());
  });
  for (const RawRow& row : made) {
    if (row.time_ns < kMinTimeNs || row.time_ns > kMaxTimeNs) {
      ++losses[Stat::kTimeOutOfRange];
    } else {
      out.push_back(row);
    }
  }
}

}  // namespace

void add_table_rows(std::string_view payload, RawPool& pool, RawPart& part) {
  const Result<format::TableChunk> decoded = format::decode_table(payload);
  if (!decoded.ok()) {
    ++part.losses[Stat::kLaneChunkDamaged];
    return;
  }
  const format::TableChunk& chunk = decoded.value();
  if (chunk.table == "memory_events") return add_rows(chunk, pool, part.memory_events, part.losses);
  if (chunk.table == "allocator_events") return add_rows(chunk, pool, part.allocator_events, part.losses);
  if (chunk.table == "allocator_segments") return add_rows(chunk, pool, part.allocator_segments, part.losses);
  if (chunk.table == "allocator_blocks") return add_rows(chunk, pool, part.allocator_blocks, part.losses);
  ++part.losses[Stat::kLaneUnknownChunk];
}

}  // namespace firelane::importer
