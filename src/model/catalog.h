// The model as named tables with named columns: what SQL, CSV and JSON show.
//
// catalog() lists the tables of model/tables.h, the row number as `id` before their columns, and what else a trace
// says: devices, metadata, losses. Cells are read straight from the model's columns. Absent values (kNoRow, kNoNumber,
// an empty interned text, a negative "not in the trace") are null, kinds are words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/model.h"

namespace firelane {

// One value of a table. Text points into the model.
struct Cell {
  enum class Kind : uint8_t { kNull, kInteger, kReal, kText };
  Kind kind = Kind::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string_view text;

  static Cell of(int64_t value) { return {.kind = Kind::kInteger, .integer = value}; }
  static Cell of_real(double value) { return {.kind = Kind::kReal, .real = value}; }
  static Cell of_text(std::string_view value) { return {.kind = Kind::kText, .text = value}; }
};

// The cell of a column. `table` is what holds it. Of a reference to a slice: the row.
Cell cell_of(const Model& model, const ColumnInfo& column, const void* table, Row row);

struct CatalogColumn {
  std::string name;
  std::string meaning;
  Cell::Kind kind;  // of the cells that are not null; ids of processes and threads may also be text
  Cell (*read)(const CatalogColumn& column, const Model& model, Row row);
  Use use = Use::kMaybe;
  // What it is made from, unless it is computed otherwise.
  const ColumnInfo* column = nullptr;
  const void* (*table)(const Model& model) = nullptr;

  Cell cell(const Model& model, Row row) const { return read(*this, model, row); }
  // For a text column whose texts are interned, the id: equality is then a comparison of integers.
  bool has_ids() const { return column != nullptr && column->type == ColumnType::kText; }
  StringId id(const Model& model, Row row) const { return column->values<StringId>(table(model))[row]; }
};

struct CatalogTable {
  std::string_view name;
  std::string_view meaning;
  std::vector<CatalogColumn> columns;
  size_t (*size)(const Model& model);
  // For tables with a lane column: the rows of one lane.
  std::pair<Row, Row> (*lane_rows)(const Model& model, LaneId lane) = nullptr;
};

// `id` before the columns, `end_ns` behind start and duration, references to slices as two columns: table and row.
CatalogTable catalog_table(const TableInfo& table);

std::span<const CatalogTable> catalog();
const CatalogTable* find_catalog_table(std::string_view name);

}  // namespace firelane
