// How a table is declared, and what follows from its declaration.
//
// A table is one list of columns (model/tables.h has those of the model):
//
//   #define FL_STEPS(WIDE, READ, MADE)        (each line but the last ends in a backslash)
//     WIDE(int64_t, start_ns, kTime, "since the start of the trace")
//     READ(StringId, name, kFull, "of the step")
//     MADE(Row, slice, kMaybe, "host_slices.id")
//
//   struct RawStep { FL_RAW_ROW(FL_STEPS) };
//   struct Steps { FL_COLUMNS(RawStep, FL_STEPS) };
//   FL_DEFINE_COLUMNS(Steps, FL_STEPS)  // in a .cc
//
// READ columns come from a reader: a field of the raw row and a column of the table. WIDE is the same for values of 8
// bytes and more; these stand first in the raw row, so that it has no holes. MADE columns are filled by assemble().
//
// From the list follow: the raw row; the columns, size() and resize(); set(), which copies a raw row; each_field(), by
// which strings, lanes and rows are renumbered, times shifted and sizes bounded when parts are merged (model/merge.cc);
// and columns(), from which SQL, CSV, Arrow, `firelane dump` and first_difference() are made. A column's use (below)
// and its type decide all of it: there is no other place to name it.
//
// Optional columns of tables that a reader fills take no memory while all rows have the same value (model/column.h).
// make_room() says beforehand which do: Differing compares the raw rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/column.h"
#include "model/values.h"

namespace firelane {

// What a column is for.
enum class Use : uint8_t {
  kFull,       // each row has a value
  kMaybe,      // absent: kNoRow, kNoNumber, an empty text, a kind without a word; for small numbers anything negative
  kSize,       // bytes, elements, flops: analyses add them up, so that the sum of a column fits int64
  kMaybeSize,  // the same, may be absent
  kTime,       // the table is sorted by it
  kTimeAside,  // the same, but not what the trace begins with: may lie before its start
  kStart,      // sorted by it within each lane
  kDuration,   // follows a kStart
  kLane,       // the lane of a slice: its rows are lanes.*_begin .. *_end
  kLaneBound,  // lanes.*_begin and *_end
  kSource,     // where the event lies in the source, for its args; not shown
  kInner,      // what analyses would else have to tell from names; not shown
  kId,         // the row number, in catalogs
};

constexpr bool is_optional(Use use) { return use == Use::kMaybe || use == Use::kMaybeSize; }
constexpr bool is_size(Use use) { return use == Use::kSize || use == Use::kMaybeSize; }
constexpr bool is_shown(Use use) { return use != Use::kSource && use != Use::kInner; }
constexpr bool is_time(Use use) { return use == Use::kTime || use == Use::kTimeAside || use == Use::kStart; }

template <Use use>
using UseIs = std::integral_constant<Use, use>;

// In the model, rows of a part (PartRow) are rows of a table.
template <typename T>
using ColumnValue = std::conditional_t<std::is_convertible_v<T, Row> && !std::is_arithmetic_v<T>, Row, T>;

// Columns that formats leave empty: one cell is enough for these.
constexpr bool may_be_uniform(Use use) { return is_optional(use) || !is_shown(use); }
template <typename T, Use use>
using ColumnFor = std::conditional_t<may_be_uniform(use), Column<ColumnValue<T>>, Cells<ColumnValue<T>>>;

// What stands in a cell that nobody filled.
template <typename T>
constexpr T blank(Use use) {
  if constexpr (std::is_same_v<T, Row>) return use == Use::kLaneBound ? 0 : kNoRow;
  if constexpr (std::is_same_v<T, int64_t>) return is_optional(use) ? kNoNumber : 0;
  if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, float>) return is_optional(use) ? T{-1} : T{};
  if constexpr (std::is_same_v<T, uint64_t>) return use == Use::kSource ? kNoSource : 0;
  return T{};
}

// ---- columns without their types --------------------------------------------------------

enum class ColumnType : uint8_t {
  kInt64,
  kInt32,
  kUInt64,
  kUInt16,
  kRow,
  kLane,
  kFloat,
  kDouble,
  kText,
  kTraceId,
  kSliceRef,
  kKind,
};

template <typename T>
constexpr ColumnType column_type() {
  if constexpr (std::is_same_v<T, int64_t>) return ColumnType::kInt64;
  if constexpr (std::is_same_v<T, int32_t>) return ColumnType::kInt32;
  if constexpr (std::is_same_v<T, uint64_t>) return ColumnType::kUInt64;
  if constexpr (std::is_same_v<T, uint16_t>) return ColumnType::kUInt16;
  if constexpr (std::is_same_v<T, Row>) return ColumnType::kRow;
  if constexpr (std::is_same_v<T, LaneId>) return ColumnType::kLane;
  if constexpr (std::is_same_v<T, float>) return ColumnType::kFloat;
  if constexpr (std::is_same_v<T, double>) return ColumnType::kDouble;
  if constexpr (std::is_same_v<T, StringId>) return ColumnType::kText;
  if constexpr (std::is_same_v<T, TraceId>) return ColumnType::kTraceId;
  if constexpr (std::is_same_v<T, SliceRef>) return ColumnType::kSliceRef;
  if constexpr (IsKind<T>) return ColumnType::kKind;
}

template <typename T>
constexpr std::span<const std::string_view> column_words() {
  if constexpr (IsKind<T>) return words_of(T{});
  return {};
}

struct ColumnInfo {
  std::string_view name;
  std::string_view meaning;
  Use use;
  ColumnType type;
  std::span<const std::string_view> words;  // of kinds
  struct Values {
    const void* data;
    size_t size;
    size_t mask;  // of ColumnView
  };
  Values (*of)(const void* table);  // REQUIRES: `table` is the one that the column belongs to

  // REQUIRES: T is what `type` says.
  template <typename T>
  ColumnView<T> values(const void* table) const {
    const Values all = of(table);
    return {static_cast<const T*>(all.data), all.size, all.mask};
  }
};

// A column of kinds of any sort.
struct KindWord {
  std::string_view word;  // "" = absent
};
struct KindColumn {
  ColumnView<uint8_t> numbers;
  std::span<const std::string_view> words;
  KindWord operator[](size_t row) const { return {words[numbers[row]]}; }
};

// Calls visit(values), where values[row] are the column's of `table`: a ColumnView<int64_t>, ..., or a KindColumn.
template <typename Visit>
decltype(auto) visit_column(const ColumnInfo& column, const void* table, const Visit& visit) {
  switch (column.type) {
    case ColumnType::kInt64: return visit(column.values<int64_t>(table));
    case ColumnType::kInt32: return visit(column.values<int32_t>(table));
    case ColumnType::kUInt64: return visit(column.values<uint64_t>(table));
    case ColumnType::kUInt16: return visit(column.values<uint16_t>(table));
    case ColumnType::kRow: return visit(column.values<Row>(table));
    case ColumnType::kLane: return visit(column.values<LaneId>(table));
    case ColumnType::kFloat: return visit(column.values<float>(table));
    case ColumnType::kDouble: return visit(column.values<double>(table));
    case ColumnType::kText: return visit(column.values<StringId>(table));
    case ColumnType::kTraceId: return visit(column.values<TraceId>(table));
    case ColumnType::kSliceRef: return visit(column.values<SliceRef>(table));
    case ColumnType::kKind: break;
  }
  return visit(KindColumn{column.values<uint8_t>(table), column.words});
}

struct Model;

// A table of the model: what SQL, CSV, Arrow and `firelane dump` list.
struct TableInfo {
  std::string_view name;
  std::string_view meaning;
  std::span<const ColumnInfo> columns;
  size_t (*size)(const Model& model);
  const void* (*of)(const Model& model);

  // Null when there is none.
  const ColumnInfo* find(std::string_view column) const;
};

}  // namespace firelane

// ---- from the list ----------------------------------------------------------------------

#define FL_SKIP(type, name, use, meaning)

#define FL_FIELD(type, name, use, meaning) type name = ::firelane::blank<type>(::firelane::Use::use);
#define FL_VISIT_FIELD(type, name, use, meaning) visit(::firelane::UseIs<::firelane::Use::use>{}, row.name);
#define FL_CHECK_WIDE(type, name, use, meaning) static_assert(sizeof(type) >= 8, #name " is READ, not WIDE");
#define FL_CHECK_SMALL(type, name, use, meaning)               \
  static_assert(sizeof(type) < 8, #name " is WIDE, not READ"); \
  static_assert(!std::is_same_v<type, ::firelane::Row>, #name " must say which table it is a row of: PartRow");

#define FL_COUNT_SIZE(type, name, use, meaning) +(::firelane::is_size(::firelane::Use::use) ? 1 : 0)
#define FL_COUNT_TIME(type, name, use, meaning) +(::firelane::is_time(::firelane::Use::use) ? 1 : 0)

// The fields of a raw row, and each_field(row, visit): visit(UseIs<...>, field) for each, in the order of the list.
#define FL_RAW_ROW(LIST)                                                                \
  static constexpr size_t kSizeCount = 0 LIST(FL_COUNT_SIZE, FL_COUNT_SIZE, FL_SKIP);   \
  static constexpr bool kIsTimed = (0 LIST(FL_COUNT_TIME, FL_COUNT_TIME, FL_SKIP)) > 0; \
  LIST(FL_FIELD, FL_SKIP, FL_SKIP)                                                      \
  LIST(FL_SKIP, FL_FIELD, FL_SKIP)                                                      \
  LIST(FL_CHECK_WIDE, FL_CHECK_SMALL, FL_SKIP)                                          \
  static void each_field(auto& row, const auto& visit) { LIST(FL_VISIT_FIELD, FL_VISIT_FIELD, FL_SKIP) }

#define FL_COLUMN(type, name, use, meaning) ::firelane::ColumnFor<type, ::firelane::Use::use> name;
#define FL_ARRAY(type, name, use, meaning) std::vector<::firelane::ColumnValue<type>> name;
#define FL_RETURN_SIZE(type, name, use, meaning) return name.size();
#define FL_RESIZE(type, name, use, meaning) \
  name.resize(rows, ::firelane::blank<::firelane::ColumnValue<type>>(::firelane::Use::use));
#define FL_SET(type, name, use, meaning) ::firelane::set_cell<::firelane::ColumnValue<type>>(name, row, map(from.name));
#define FL_FLAG(type, name, use, meaning) bool name = false;
#define FL_NOTE(type, name, use, meaning)                                                    \
  if constexpr (::firelane::may_be_uniform(::firelane::Use::use)) {                          \
    name = name | !::firelane::is_same_value<::firelane::ColumnValue<type>>(a.name, b.name); \
  }
#define FL_NOTE_ALL(type, name, use, meaning) name = name | other.name;
#define FL_MAKE_ROOM(type, name, use, meaning) \
  ::firelane::make_cells<::firelane::ColumnValue<type>>(name, rows, differing.name, map(first.name));

#define FL_TABLE(LIST, COLUMN)                                                 \
  LIST(COLUMN, COLUMN, COLUMN)                                                 \
  size_t size() const { LIST(FL_RETURN_SIZE, FL_RETURN_SIZE, FL_RETURN_SIZE) } \
  void resize(size_t rows) { LIST(FL_RESIZE, FL_RESIZE, FL_RESIZE) }           \
  static std::span<const ::firelane::ColumnInfo> columns();

// A table that assemble() makes by itself, of arrays. size() is that of its first column.
#define FL_MADE_COLUMNS(LIST) FL_TABLE(LIST, FL_ARRAY)

// A table whose rows a reader gives. set() copies all but what is MADE; map(value) gives what stands in the column.
// Differing: which columns have not the same value in all of the rows that were compared with the first. make_room()
// is resize() for a table of which set() is called for each row then, by any number of threads; `first` is one of the
// rows.
#define FL_COLUMNS(RawRow, LIST)                                                                  \
  FL_TABLE(LIST, FL_COLUMN)                                                                       \
  using Raw = RawRow;                                                                             \
  void set(size_t row, const RawRow& from, const auto& map) { LIST(FL_SET, FL_SET, FL_SKIP) }     \
  struct Differing {                                                                              \
    LIST(FL_FLAG, FL_FLAG, FL_SKIP)                                                               \
    void compare(const RawRow& a, const RawRow& b) { LIST(FL_NOTE, FL_NOTE, FL_SKIP) }            \
    void add(const Differing& other) { LIST(FL_NOTE_ALL, FL_NOTE_ALL, FL_SKIP) }                  \
  };                                                                                              \
  void make_room(size_t rows, const Differing& differing, const RawRow& first, const auto& map) { \
    LIST(FL_MAKE_ROOM, FL_MAKE_ROOM, FL_RESIZE)                                                   \
  }

#define FL_COLUMN_INFO(type, name, use, meaning)                                                           \
  ::firelane::ColumnInfo{#name,                                                                            \
                         meaning,                                                                          \
                         ::firelane::Use::use,                                                             \
                         ::firelane::column_type<::firelane::ColumnValue<type>>(),                         \
                         ::firelane::column_words<::firelane::ColumnValue<type>>(),                        \
                         [](const void* table) -> ::firelane::ColumnInfo::Values {                         \
                           const auto column = ::firelane::view_of(static_cast<const Self*>(table)->name); \
                           return {column.data, column.rows, column.mask};                                 \
                         }},

#define FL_DEFINE_COLUMNS(Table, LIST)                                                                           \
  std::span<const ::firelane::ColumnInfo> Table::columns() {                                                     \
    using Self = Table;                                                                                          \
    static constexpr ::firelane::ColumnInfo kColumns[] = {LIST(FL_COLUMN_INFO, FL_COLUMN_INFO, FL_COLUMN_INFO)}; \
    return kColumns;                                                                                             \
  }
