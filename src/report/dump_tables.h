// The tables that `firelane dump` knows: those of model/columns.h, metadata and losses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "model/columns.h"
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
  void add(std::string_view column, char letter) { add(column, std::string_view(&letter, 1)); }
  void add(std::string_view column, StringId value);  // kNoString = absent
  void add(std::string_view column, std::string_view value);
  void add(std::string_view column, LaneId value) { add(column, static_cast<int64_t>(value)); }
  void add(std::string_view column, const TraceId& value);
  void add(std::string_view column, const SliceRef& value);       // "host:12", "device:3"
  void raw_json(std::string_view column, std::string_view json);  // REQUIRES: valid JSON, one line
  // The word of a kind; "" = absent.
  void add(std::string_view column, IsKind auto value) {
    name_of(value).empty() ? absent(column) : add(column, name_of(value));
  }

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
