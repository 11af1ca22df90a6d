#include "model/catalog.h"

#include <charconv>
#include <string>
#include <type_traits>
#include <utility>

namespace firelane {

namespace {

using Kind = Cell::Kind;

Cell to_cell(const Model&, int64_t value) { return value == kNoNumber ? Cell{} : Cell::of(value); }
Cell to_cell(const Model&, int32_t value) { return value < 0 ? Cell{} : Cell::of(value); }
Cell to_cell(const Model&, uint16_t value) { return Cell::of(value); }
Cell to_cell(const Model&, uint64_t value) { return Cell::of(static_cast<int64_t>(value)); }
Cell to_cell(const Model&, Row value) { return value == kNoRow ? Cell{} : Cell::of(value); }
Cell to_cell(const Model&, LaneId value) { return Cell::of(static_cast<int64_t>(value)); }
Cell to_cell(const Model&, double value) { return Cell::of_real(value); }
// The shortest decimal that names the float: 12.3, not 12.300000190734863.
Cell to_cell(const Model&, float value) {
  if (value < 0) return {};
  char digits[32];
  const char* end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  double shortest = 0;
  std::from_chars(digits, end, shortest);
  return Cell::of_real(shortest);
}
Cell to_cell(const Model& m, StringId value) { return value == kNoString ? Cell{} : Cell::of_text(m.text(value)); }
Cell to_cell(const Model&, IsKind auto value) {
  return name_of(value).empty() ? Cell{} : Cell::of_text(name_of(value));
}
Cell to_cell(const Model&, char scope) {
  return Cell::of_text(scope == 'g' ? "global" : scope == 'p' ? "process" : "thread");
}
Cell to_cell(const Model& m, const TraceId& id) {
  return id.text != kNoString ? to_cell(m, id.text) : to_cell(m, id.number);
}
Cell text_cell(const std::string& text) { return text.empty() ? Cell{} : Cell::of_text(text); }

template <typename T>
constexpr Kind kind_of() {
  if constexpr (std::is_floating_point_v<T>) return Kind::kReal;
  if constexpr (IsKind<T> || std::is_same_v<T, StringId> || std::is_same_v<T, char>) return Kind::kText;
  return Kind::kInteger;
}

template <typename Table, typename C>
using ValueOf = typename std::remove_cvref_t<decltype(C::of(Table::of(std::declval<Model>())))>::value_type;

template <typename Table, typename C>
Cell cell_at(const Model& m, Row row) {
  const ValueOf<Table, C>& value = C::of(Table::of(m))[row];
  // In a column without gaps -1 is a value: the CPU as a device.
  if constexpr (!C::kOptional && std::is_same_v<ValueOf<Table, C>, int32_t>) return Cell::of(value);
  return to_cell(m, value);
}

template <typename Table, typename C>
void add_column(std::vector<CatalogColumn>& columns, const C& column) {
  using Value = ValueOf<Table, C>;
  CatalogColumn& added = columns.emplace_back(CatalogColumn{.name = column.name,
                                                            .meaning = column.meaning,
                                                            .kind = kind_of<Value>(),
                                                            .cell = cell_at<Table, C>,
                                                            .role = column.role});
  if constexpr (std::is_same_v<Value, StringId>) {
    added.ids = [](const Model& m) { return &C::of(Table::of(m)); };
  }
}

// An end of an arrow: which table, and which row of it.
template <typename Table, typename C>
  requires std::is_same_v<ValueOf<Table, C>, SliceRef>
void add_column(std::vector<CatalogColumn>& columns, const C& column) {
  static const std::string table_name = std::string(column.name) + "_table";
  static const std::string row_name = std::string(column.name) + "_slice";
  static const std::string row_meaning = "row of " + table_name;
  columns.push_back({table_name, "host_slices or device_slices", Kind::kText, [](const Model& m, Row row) {
                       return Cell::of_text(C::of(Table::of(m))[row].on_device ? "device_slices" : "host_slices");
                     }});
  columns.push_back({row_name, row_meaning, Kind::kInteger,
                     [](const Model& m, Row row) { return to_cell(m, C::of(Table::of(m))[row].row); }});
}

CatalogColumn id_column() {
  return {.name = "id",
          .meaning = "row number",
          .kind = Kind::kInteger,
          .cell = [](const Model&, Row row) { return Cell::of(row); },
          .role = ColumnRole::kId};
}

template <typename Table>
CatalogColumn end_column() {
  return {.name = "end_ns",
          .meaning = "start_ns + duration_ns",
          .kind = Kind::kInteger,
          .cell = [](const Model& m, Row row) { return Cell::of(Table::of(m).end_ns(row)); }};
}

template <typename Table>
CatalogTable catalog_table(const Table& table) {
  CatalogTable result{table.name, table.meaning, {id_column()}, [](const Model& m) { return Table::of(m).size(); }};
  each_column(Table::kColumns, [&]<typename C>(const C& column) {
    if (column.role == ColumnRole::kLaneBound) return;  // shown as counts: add_lane_counts()
    add_column<Table>(result.columns, column);
    if constexpr (requires(const Model& m) { Table::of(m).end_ns(Row{}); }) {
      if (column.name == "duration_ns") result.columns.push_back(end_column<Table>());
    }
  });
  return result;
}

void add_lane_counts(CatalogTable& lanes) {
  lanes.columns.push_back({"host_slice_count", "host slices on it", Kind::kInteger, [](const Model& m, Row row) {
                             return Cell::of(m.lanes.host_end[row] - m.lanes.host_begin[row]);
                           }});
  lanes.columns.push_back({"device_slice_count", "device slices on it", Kind::kInteger, [](const Model& m, Row row) {
                             return Cell::of(m.lanes.device_end[row] - m.lanes.device_begin[row]);
                           }});
}

std::pair<Row, Row> host_rows(const Model& m, LaneId lane) {
  const auto l = static_cast<size_t>(lane);
  return {m.lanes.host_begin[l], m.lanes.host_end[l]};
}

std::pair<Row, Row> device_rows(const Model& m, LaneId lane) {
  const auto l = static_cast<size_t>(lane);
  return {m.lanes.device_begin[l], m.lanes.device_end[l]};
}

template <auto Member>
CatalogColumn device_column(std::string_view name, std::string_view meaning) {
  return {name, meaning, Kind::kInteger,
          [](const Model& m, Row row) { return to_cell(m, m.info.devices[row].*Member); }};
}

CatalogTable devices_table() {
  using T = DeviceProperties;
  return {"devices",
          "the GPUs of the recording",
          {device_column<&T::id>("id", "index of the device"),
           {"name", "NVIDIA H200", Kind::kText,
            [](const Model& m, Row row) { return text_cell(m.info.devices[row].name); }},
           device_column<&T::total_memory_bytes>("total_memory_bytes", "of the device"),
           device_column<&T::compute_major>("compute_major", "compute capability"),
           device_column<&T::compute_minor>("compute_minor", "compute capability"),
           device_column<&T::multiprocessors>("multiprocessors", "how many"),
           device_column<&T::max_threads_per_multiprocessor>("max_threads_per_multiprocessor", "limit"),
           device_column<&T::registers_per_multiprocessor>("registers_per_multiprocessor", "limit"),
           device_column<&T::shared_memory_per_multiprocessor_bytes>("shared_memory_per_multiprocessor_bytes", "limit"),
           device_column<&T::warp_size>("warp_size", "threads")},
          [](const Model& m) { return m.info.devices.size(); }};
}

CatalogTable metadata_table() {
  return {"metadata",
          "top-level keys of the trace",
          {{"key", "trace_id, with_stack, ...", Kind::kText,
            [](const Model& m, Row row) { return text_cell(m.info.metadata[row].key); }},
           {"json", "its value as JSON text", Kind::kText,
            [](const Model& m, Row row) { return text_cell(m.info.metadata[row].json); }}},
          [](const Model& m) { return m.info.metadata.size(); }};
}

CatalogTable losses_table() {
  return {
      "losses",
      "what was skipped, repaired or left unlinked; count 0 = nothing",
      {{"name", "trace.truncated, ...", Kind::kText,
        [](const Model&, Row row) { return Cell::of_text(kStats[row].name); }},
       {"severity", "info, warning or data_loss", Kind::kText,
        [](const Model&, Row row) { return Cell::of_text(name_of(kStats[row].severity)); }},
       {"count", "events", Kind::kInteger, [](const Model& m, Row row) { return to_cell(m, m.losses.counts[row]); }},
       {"meaning", "what happened", Kind::kText,
        [](const Model&, Row row) { return Cell::of_text(kStats[row].meaning); }},
       {"remedy", "what to do", Kind::kText, [](const Model&, Row row) { return Cell::of_text(kStats[row].remedy); }}},
      [](const Model&) { return kStatCount; }};
}

}  // namespace

std::span<const CatalogTable> catalog() {
  static const std::vector<CatalogTable> tables = [] {
    std::vector<CatalogTable> all;
    each_model_table([&](const auto& table) { all.push_back(catalog_table(table)); });
    for (CatalogTable& table : all) {
      if (table.name == "lanes") add_lane_counts(table);
      if (table.name == "host_slices") table.lane_rows = host_rows;
      if (table.name == "device_slices") table.lane_rows = device_rows;
    }
    all.insert(all.end(), {devices_table(), metadata_table(), losses_table()});
    return all;
  }();
  return tables;
}

const CatalogTable* find_catalog_table(std::string_view name) {
  for (const CatalogTable& table : catalog()) {
    if (table.name == name) return &table;
  }
  return nullptr;
}

}  // namespace firelane
