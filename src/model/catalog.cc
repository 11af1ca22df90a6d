#include "model/catalog.h"

#include <charconv>
#include <string>
#include <type_traits>

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
Cell to_cell(const Model&, std::string_view text) { return text.empty() ? Cell{} : Cell::of_text(text); }
Cell to_cell(const Model& m, StringId value) { return to_cell(m, m.text(value)); }
Cell to_cell(const Model& m, KindWord value) { return to_cell(m, value.word); }
Cell to_cell(const Model& m, const TraceId& id) {
  return id.text != kNoString ? to_cell(m, id.text) : to_cell(m, id.number);
}
Cell to_cell(const Model& m, const SliceRef& ref) { return to_cell(m, ref.row); }

Kind kind_of(ColumnType type) {
  switch (type) {
    case ColumnType::kFloat:
    case ColumnType::kDouble: return Kind::kReal;
    case ColumnType::kText:
    case ColumnType::kKind: return Kind::kText;
    default: return Kind::kInteger;
  }
}

Cell read_cell(const CatalogColumn& c, const Model& m, Row row) { return cell_of(m, *c.column, c.table(m), row); }

// `column` is the start; the duration stands behind it.
Cell read_end(const CatalogColumn& c, const Model& m, Row row) {
  const void* const table = c.table(m);
  const ColumnInfo& start = c.column[0];
  const ColumnInfo& duration = c.column[1];
  return Cell::of(start.values<int64_t>(table)[row] + duration.values<int64_t>(table)[row]);
}

Cell read_table_of_slice(const CatalogColumn& c, const Model& m, Row row) {
  return Cell::of_text(c.column->values<SliceRef>(c.table(m))[row].on_device ? "device_slices" : "host_slices");
}

template <std::vector<Row> Lanes::* Begin, std::vector<Row> Lanes::* End>
Cell read_lane_count(const CatalogColumn&, const Model& m, Row row) {
  return Cell::of((m.lanes.*End)[row] - (m.lanes.*Begin)[row]);
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
CatalogColumn device_column(const char* name, const char* meaning) {
  return {name, meaning, Kind::kInteger,
          [](const CatalogColumn&, const Model& m, Row row) { return to_cell(m, m.info.devices[row].*Member); }};
}

CatalogTable devices_table() {
  using T = DeviceProperties;
  return {"devices",
          "the GPUs of the recording",
          {device_column<&T::id>("id", "index of the device"),
           {"name", "NVIDIA H200", Kind::kText,
            [](const CatalogColumn&, const Model& m, Row row) {
              return to_cell(m, std::string_view(m.info.devices[row].name));
            }},
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
            [](const CatalogColumn&, const Model& m, Row row) {
              return to_cell(m, std::string_view(m.info.metadata[row].key));
            }},
           {"json", "its value as JSON text", Kind::kText,
            [](const CatalogColumn&, const Model& m, Row row) {
              return to_cell(m, std::string_view(m.info.metadata[row].json));
            }}},
          [](const Model& m) { return m.info.metadata.size(); }};
}

CatalogTable losses_table() {
  return {"losses",
          "what was skipped, repaired or left unlinked; count 0 = nothing",
          {{"name", "trace.truncated, ...", Kind::kText,
            [](const CatalogColumn&, const Model&, Row row) { return Cell::of_text(kStats[row].name); }},
           {"severity", "info, warning or data_loss", Kind::kText,
            [](const CatalogColumn&, const Model&, Row row) { return Cell::of_text(name_of(kStats[row].severity)); }},
           {"count", "events", Kind::kInteger,
            [](const CatalogColumn&, const Model& m, Row row) { return to_cell(m, m.losses.counts[row]); }},
           {"meaning", "what happened", Kind::kText,
            [](const CatalogColumn&, const Model&, Row row) { return Cell::of_text(kStats[row].meaning); }},
           {"remedy", "what to do", Kind::kText,
            [](const CatalogColumn&, const Model&, Row row) { return Cell::of_text(kStats[row].remedy); }}},
          [](const Model&) { return kStatCount; }};
}

}  // namespace

Cell cell_of(const Model& model, const ColumnInfo& column, const void* table, Row row) {
  // In a column without gaps -1 is a value: the CPU as a device.
  if (column.type == ColumnType::kInt32 && !is_optional(column.use)) {
    return Cell::of(column.values<int32_t>(table)[row]);
  }
  return visit_column(column, table, [&](const auto& values) { return to_cell(model, values[row]); });
}

CatalogTable catalog_table(const TableInfo& table) {
  CatalogTable result{table.name, table.meaning, {}, table.size};
  const auto add = [&](const std::string& name, const std::string& meaning, Kind kind, const auto& read,
                       const ColumnInfo* column,
                       Use use) { result.columns.push_back({name, meaning, kind, read, use, column, table.of}); };
  add(
      "id", "row number", Kind::kInteger, [](const CatalogColumn&, const Model&, Row row) { return Cell::of(row); },
      nullptr, Use::kId);
  for (const ColumnInfo& column : table.columns) {
    const std::string name(column.name);
    if (!is_shown(column.use) || column.use == Use::kLaneBound) continue;
    if (column.type == ColumnType::kSliceRef) {
      add(name + "_table", "host_slices or device_slices", Kind::kText, read_table_of_slice, &column, Use::kMaybe);
      add(name + "_slice", "row of " + name + "_table", Kind::kInteger, read_cell, &column, Use::kMaybe);
      continue;
    }
    add(name, std::string(column.meaning), kind_of(column.type), read_cell, &column, column.use);
    if (column.use == Use::kDuration) {
      add("end_ns", "start_ns + duration_ns", Kind::kInteger, read_end, &column - 1, Use::kFull);
    }
  }
  return result;
}

std::span<const CatalogTable> catalog() {
  static const std::vector<CatalogTable> tables = [] {
    std::vector<CatalogTable> all;
    for (const TableInfo& table : model_tables()) all.push_back(catalog_table(table));
    for (CatalogTable& table : all) {
      if (table.name == "host_slices") table.lane_rows = host_rows;
      if (table.name == "device_slices") table.lane_rows = device_rows;
      if (table.name != "lanes") continue;
      table.columns.push_back({"host_slice_count", "host slices on it", Kind::kInteger,
                               read_lane_count<&Lanes::host_begin, &Lanes::host_end>});
      table.columns.push_back({"device_slice_count", "device slices on it", Kind::kInteger,
                               read_lane_count<&Lanes::device_begin, &Lanes::device_end>});
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
