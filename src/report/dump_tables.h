// The tables that `firelane dump` knows, each with its columns. A new column of the model
// gets its line in dump_tables.cc.
#pragma once

#include <cstdint>
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

  void number(std::string_view column, int64_t value);  // kNoNumber = absent
  void number(std::string_view column, int64_t value, int64_t absent);
  void row(std::string_view column, Row value);      // kNoRow = absent
  void real(std::string_view column, double value);  // below 0 = absent
  void any_real(std::string_view column, double value);
  void address(std::string_view column, uint64_t value);
  void text(std::string_view column, StringId value);  // kNoString = absent
  void text(std::string_view column, std::string_view value);
  void id(std::string_view column, const TraceId& value);
  void slice(std::string_view column, const SliceRef& value);     // "host:12", "device:3"
  void raw_json(std::string_view column, std::string_view json);  // REQUIRES: valid JSON, one line

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
  void (*write)(const Model& model, Row row, RowLine& out);
  uint64_t (*source)(const Model& model, Row row) = nullptr;  // null: rows that are not events
};

const std::vector<DumpTable>& dump_tables();

}  // namespace firelane::report
