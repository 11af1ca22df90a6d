#include "report/dump_tables.h"

namespace firelane::report {

namespace {

template <typename Table>
DumpTable dump_table(const Table& table) {
  DumpTable result{.name = table.name,
                   .size = [](const Model& m) { return Table::of(m).size(); },
                   .write =
                       [](const Model& m, Row row, RowLine& out) {
                         each_column(Table::kColumns,
                                     [&](const auto& column) { out.add(column.name, column.of(Table::of(m))[row]); });
                       }};
  if constexpr (requires(const Model& m) { Table::of(m).source; }) {
    result.source = [](const Model& m, Row row) { return Table::of(m).source[row]; };
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

const std::vector<DumpTable>& dump_tables() {
  static const std::vector<DumpTable> tables = [] {
    std::vector<DumpTable> all;
    each_model_table([&](const auto& table) { all.push_back(dump_table(table)); });
    all.push_back({"metadata", [](const Model& m) { return m.info.metadata.size(); }, write_metadata});
    all.push_back({"losses", [](const Model&) { return kStatCount; }, write_loss});
    return all;
  }();
  return tables;
}

}  // namespace firelane::report
