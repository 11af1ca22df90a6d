// The model as named tables with named columns: what SQL, CSV and JSON show.
//
// catalog() lists the tables and columns of model/columns.h, the row number as `id` before them, and what else a trace
// says: devices, metadata, losses. Cells are read straight from the model's columns. Absent values (kNoRow, kNoNumber,
// an empty interned text, a negative "not in the trace") are null, enumerations are words.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/columns.h"
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

struct CatalogColumn {
  std::string_view name;
  std::string_view meaning;
  Cell::Kind kind;  // of the cells that are not null; ids of processes and threads may also be text
  Cell (*cell)(const Model& model, Row row);
  ColumnRole role = ColumnRole::kPlain;
  // The interned ids behind a text column, or null: equality is then a comparison of integers.
  const std::vector<StringId>* (*ids)(const Model& model) = nullptr;
};

struct CatalogTable {
  std::string_view name;
  std::string_view meaning;
  std::vector<CatalogColumn> columns;
  size_t (*size)(const Model& model);
  // For tables with a lane column: the rows of one lane.
  std::pair<Row, Row> (*lane_rows)(const Model& model, LaneId lane) = nullptr;
};

std::span<const CatalogTable> catalog();
const CatalogTable* find_catalog_table(std::string_view name);

}  // namespace firelane
