#include "report/dump_tables.h"

namespace firelane::report {

namespace {

DumpTable dump_table(const TableInfo& table) {
  DumpTable result{.name = table.name, .size = table.size, .write = [&table](const Model&, Row row, RowLine& out) {
                     out.add_row(table, row);
                   }};
  if (const ColumnInfo* source = table.find("source")) {
    result.source = [&table, source](const Model& m, Row row) { return source->values<uint64_t>(table.of(m))[row]; };
  }
  return result;
}

void write_metadata(const Model& model, Row row, RowLine& out) {
  out.add("key", model.info.metadata[row].key);
  out.add("json", model.info.metadata[row].json);
}

void write_loss(const Model& model, Row row, RowLine& out) {
  out.add("name", kStats[row].name);
  out.add("count", static_cast<int64_t>(model.losses.counts[row]));
}

}  // namespace

void RowLine::add_row(const TableInfo& table, Row row) {
  for (const ColumnInfo& column : table.columns) {
    if (!is_shown(column.use)) continue;
    visit_column(column, table.of(model_), [&](const auto& values) { add(column.name, values[row]); });
  }
}

const std::vector<DumpTable>& dump_tables() {
  static const std::vector<DumpTable> tables = [] {
    std::vector<DumpTable> all;
    for (const TableInfo& table : model_tables()) all.push_back(dump_table(table));
    all.push_back({"metadata", [](const Model& m) { return m.info.metadata.size(); }, write_metadata});
    all.push_back({"losses", [](const Model&) { return kStatCount; }, write_loss});
    return all;
  }();
  return tables;
}

}  // namespace firelane::report
