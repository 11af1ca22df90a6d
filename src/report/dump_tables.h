// The tables that `firelane dump` knows: those of model/tables.h, metadata and losses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "model/model.h"
#include "report/dump.h"

namespace firelane::report {

// One row, column by column, as a text or JSON line.
class RowLine {
 public:
  RowLine(const Model& model, DumpForm form, std::string_view table, size_t row);

  void add(std::string_view column, int64_t value);  // kNoNumber = absent
  void add(std::string_view column, int32_t value);  // -1 = absent
  void add(std::string_view column, uint16_t value) { add(column, int64_t{value}); }
  void add(std::string_view column, Row value);       // kNoRow = absent
  void add(std::string_view column, uint64_t value);  // an address
  void add(std::string_view column, float value);     // below 0 = absent
  void add(std::string_view column, double value);
  void add(std::string_view column, StringId value);  // kNoString = absent
  void add(std::string_view column, std::string_view value);
  void add(std::string_view column, LaneId value) { add(column, static_cast<int64_t>(value)); }
  void add(std::string_view column, const TraceId& value);
  void add(std::string_view column, const SliceRef& value);       // "host:12", "device:3"
  void raw_json(std::string_view column, std::string_view json);  // REQUIRES: valid JSON, one line
  void add(std::string_view column, KindWord value) { value.word.empty() ? absent(column) : add(column, value.word); }
  // All columns of the row of a table.
  void add_row(const TableInfo& table, Row row);

  std::string take();  // with the line break

 private:
  bool as_json() const { return form_ == DumpForm::kJsonLines; }
  void bare(std::string_view column, std::string_view value);
  void absent(std::string_view column);

  const Model& model_;
  DumpForm form_;
  JsonWriter json_;
  std::string line_;
};

struct DumpTable {
  std::string_view name;
  size_t (*size)(const Model& model);
  std::function<void(const Model& model, Row row, RowLine& out)> write;
  std::function<uint64_t(const Model& model, Row row)> source;  // empty: rows that are not events
};

const std::vector<DumpTable>& dump_tables();

}  // namespace firelane::report
