#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "report/quantity.h"
#include "report/render.h"

namespace firelane::report {

void Table::add(std::vector<Cell> row) {
  FL_CHECK(row.size() == columns.size(), "Table::add: one cell per column");
  rows.push_back(std::move(row));
}

namespace {

// The largest there is for what no integer holds: sums of hostile sizes.
int64_t integer_of(double number) {
  constexpr double kBound = 9.2e18;
  return std::isnan(number) ? 0 : static_cast<int64_t>(std::clamp(number, -kBound, kBound));
}

}  // namespace

std::string cell_text(const Cell& cell, Kind kind) {
  if (std::holds_alternative<std::monostate>(cell)) return "-";
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  const bool whole = std::holds_alternative<int64_t>(cell);
  const int64_t integer = whole ? std::get<int64_t>(cell) : integer_of(std::get<double>(cell));
  const double number = whole ? static_cast<double>(integer) : std::get<double>(cell);
  switch (kind) {
    case Kind::kDuration: return format_duration(integer);
    case Kind::kBytes: return format_bytes(integer);
    case Kind::kPercent: return format_percent(number);
    case Kind::kBandwidth: return format_bandwidth(number);
    case Kind::kSmall: return fmt::format(fmt::runtime(std::abs(number) < 1000 ? "{:.4g}" : "{:.0f}"), number);
    case Kind::kTruth: return number != 0 ? "yes" : "no";
    case Kind::kText:
    case Kind::kNumber: break;
  }
  return whole ? fmt::format("{}", integer) : fmt::format("{:.2f}", number);
}

std::string render(const Report& report, Form form, const TextStyle& style) {
  switch (form) {
    case Form::kText: return render_text(report, style);
    case Form::kMarkdown: return render_markdown(report);
    case Form::kCsv: return render_csv(report);
    case Form::kJson: return render_json(report);
  }
  return {};
}

std::string render(const Table& table, Form form, const TextStyle& style) {
  return render(Report{.tables = {table}}, form, style);
}

}  // namespace firelane::report
