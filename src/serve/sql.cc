// POST /api/t/T/sql {"query", "rows"}: SQLite over the tables of the trace, read-only.
#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "report/described.h"
#include "serve/handlers.h"
#include "sql/database.h"

namespace firelane::serve {

namespace {

constexpr std::chrono::seconds kMostTime{20};
constexpr int64_t kMostSqlRows = 100'000;

report::Kind kind_by_name(std::string_view name) {
  if (name.ends_with("_ns")) return report::Kind::kDuration;
  if (name.ends_with("_bytes") || name == "bytes") return report::Kind::kBytes;
  if (name.ends_with("_percent")) return report::Kind::kPercent;
  return report::Kind::kNumber;
}

// Keeps the first rows of each result and counts the rest.
class ResultTables : public sql::RowVisitor {
 public:
  explicit ResultTables(size_t rows) : rows_(rows) {}

  void columns(const std::vector<std::string>& names) override {
    report::Table& table = report_.tables.emplace_back();
    if (report_.tables.size() > 1) table.name = "rows_" + std::to_string(report_.tables.size());
    for (const std::string& name : names) table.columns.push_back({.name = name, .label = name});
    counts_.push_back(0);
  }
  void row(std::span<const Cell> cells) override {
    report::Table& table = report_.tables.back();
    if (counts_.back()++ >= rows_) return;
    std::vector<report::Cell> row;
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool is_number = cells[i].kind == Cell::Kind::kInteger || cells[i].kind == Cell::Kind::kReal;
      if (is_number) table.columns[i].kind = kind_by_name(table.columns[i].name);
      row.push_back(cell(cells[i]));
    }
    table.add(std::move(row));
  }

  report::Report take() {
    for (size_t i = 0; i < counts_.size(); ++i) report_.tables[i].row_count = counts_[i];
    return std::move(report_);
  }

 private:
  static report::Cell cell(const Cell& c) {
    switch (c.kind) {
      case Cell::Kind::kNull: return {};
      case Cell::Kind::kInteger: return c.integer;
      case Cell::Kind::kReal: return c.real;
      case Cell::Kind::kText: return std::string(c.text);
    }
    return {};
  }

  size_t rows_;
  std::vector<size_t> counts_;
  report::Report report_{.title = "SQL"};
};

}  // namespace

Answer sql(const ServedTrace& trace, const Request& request) {
  simdjson::dom::parser parser;
  simdjson::dom::element body;
  std::string_view query;
  const bool is_good = parser.parse(simdjson::padded_string(request.body)).get(body) == simdjson::SUCCESS &&
                       body["query"].get(query) == simdjson::SUCCESS;
  if (!is_good) return refusal(400, R"(the body must be {"query": "select ...", "rows": 1000})");
  int64_t rows = 1000;
  if (body["rows"].get(rows) == simdjson::INCORRECT_TYPE) return refusal(400, "rows must be a whole number");
  const Result<std::unique_ptr<sql::Database>> database = sql::Database::open(trace.model());
  if (!database.ok()) return refusal(500, database.error().message);
  ResultTables tables(static_cast<size_t>(std::clamp<int64_t>(rows, 0, kMostSqlRows)));
  const Result<void> ran = database.value()->run(query, tables, {.time = kMostTime});
  if (!ran.ok()) return refusal(400, ran.error().message);
  return {.body = report::described(tables.take(), SIZE_MAX)};
}

}  // namespace firelane::serve
