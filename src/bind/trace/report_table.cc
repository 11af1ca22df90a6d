#include "bind/trace/report_table.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "export/arrow_builder.h"
#include "model/model.h"

namespace firelane::bind {

namespace {

using report::Cell;
using report::Column;
using report::Kind;

bool is_real(const report::Table& table, size_t column) {
  const Kind kind = table.columns[column].kind;
  if (kind == Kind::kPercent || kind == Kind::kBandwidth) return true;
  return std::ranges::any_of(table.rows, [&](const auto& row) { return std::holds_alternative<double>(row[column]); });
}

// `absent` for cells that are not known.
template <typename T>
std::vector<T> numbers(const report::Table& table, size_t column, T absent) {
  std::vector<T> values;
  for (const std::vector<Cell>& row : table.rows) {
    const Cell& cell = row[column];
    const auto* integer = std::get_if<int64_t>(&cell);
    const auto* real = std::get_if<double>(&cell);
    values.push_back(integer ? static_cast<T>(*integer) : real ? static_cast<T>(*real) : absent);
  }
  return values;
}

ArrowTexts texts(const report::Table& table, size_t column) {
  ArrowTexts result;
  for (const std::vector<Cell>& row : table.rows) {
    const bool known = !std::holds_alternative<std::monostate>(row[column]);
    result.add(known ? report::cell_text(row[column], Kind::kText) : "");
  }
  return result;
}

Cell report_cell(const ArrowCell& cell) {
  return std::visit(
      [](const auto& value) -> Cell {
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string_view>) return std::string(value);
        if constexpr (std::is_same_v<T, double>) return value;
        // An address above 2^63 is shown as text: a report's numbers are signed.
        if constexpr (std::is_same_v<T, uint64_t>) {
          return value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ? Cell{std::to_string(value)}
                                                                                    : Cell{static_cast<int64_t>(value)};
        }
        if constexpr (std::is_same_v<T, int64_t>) return value;
        return {};
      },
      cell);
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
}

void append_cell(std::string& out, std::string_view tag, std::string_view text) {
  out.append("<").append(tag).append(">");
  append_escaped(out, text);
  out.append("</").append(tag).append(">");
}

}  // namespace

std::shared_ptr<const ArrowTable> arrow_table(const report::Table& table) {
  ArrowTableBuilder builder(table.name, table.rows.size());
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    if (column.kind == Kind::kText) {
      builder.text(column.name, texts(table, i), Absent::kNull);
    } else if (is_real(table, i)) {
      builder.own(column.name, numbers(table, i, std::numeric_limits<double>::quiet_NaN()), Absent::kNull);
    } else {
      builder.own(column.name, numbers(table, i, kNoNumber), Absent::kNull);
    }
  }
  return std::move(builder).build();
}

report::Table first_rows(const ArrowTable& table, size_t rows) {
  report::Table result{.name = table.name(), .title = table.name()};
  for (const ArrowColumn& column : table.columns()) {
    const bool is_text = column.texts != nullptr;
    result.columns.push_back({.name = column.name,
                              .label = column.name,
                              .kind = is_text ? Kind::kText : Kind::kNumber,
                              .max_width = size_t{40}});
  }
  for (size_t row = 0; row < std::min(rows, table.rows()); ++row) {
    std::vector<Cell> cells;
    for (size_t i = 0; i < result.columns.size(); ++i) cells.push_back(report_cell(table.cell(i, row)));
    result.add(std::move(cells));
  }
  if (table.rows() > rows) {
    result.notes.push_back("the first " + std::to_string(rows) + " of " + std::to_string(table.rows()) + " rows");
  }
  return result;
}

std::string html(const report::Table& table, size_t rows, size_t all_rows) {
  std::string out = "<table>\n<thead>\n<tr>";
  for (const Column& column : table.columns) append_cell(out, "th", column.label);
  out += "</tr>\n</thead>\n<tbody>\n";
  for (size_t row = 0; row < std::min(rows, table.rows.size()); ++row) {
    out += "<tr>";
    for (size_t i = 0; i < table.columns.size(); ++i) {
      append_cell(out, "td", report::cell_text(table.rows[row][i], table.columns[i].kind));
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n<p>" + std::to_string(all_rows) + " rows</p>\n";
}

}  // namespace firelane::bind
