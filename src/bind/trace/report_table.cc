#include "bind/trace/report_table.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "export/arrow_builder.h"
#include "model/model.h"

namespace firelane::bind_trace {

namespace {

using report::Cell;
using report::Column;
using report::Kind;

template <typename T>
bool some_cell_is(const report::Table& table, size_t column) {
  return std::ranges::any_of(table.rows, [&](const auto& row) { return std::holds_alternative<T>(row[column]); });
}

bool is_text(const report::Table& table, size_t column) {
  return table.columns[column].kind == Kind::kText || some_cell_is<std::string>(table, column);
}

bool is_real(const report::Table& table, size_t column) {
  const Kind kind = table.columns[column].kind;
  return kind == Kind::kPercent || kind == Kind::kBandwidth || some_cell_is<double>(table, column);
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

std::vector<int8_t> truths(const report::Table& table, size_t column) {
  std::vector<int8_t> values;
  for (const int64_t number : numbers<int64_t>(table, column, -1)) values.push_back(static_cast<int8_t>(number));
  return values;
}

// Unlike cell_text(), which rounds: a text that programs read.
std::string exact_text(const Cell& cell) {
  const auto* real = std::get_if<double>(&cell);
  if (!real) return std::holds_alternative<std::monostate>(cell) ? "" : report::cell_text(cell, Kind::kText);
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, *real).ptr};
}

exporter::ArrowTexts texts(const report::Table& table, size_t column) {
  exporter::ArrowTexts result;
  for (const std::vector<Cell>& row : table.rows) result.add(exact_text(row[column]));
  return result;
}

Cell report_cell(const exporter::ArrowCell& cell) {
  return std::visit(
      [](const auto& value) -> Cell {
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string_view>) return std::string(value);
        if constexpr (std::is_same_v<T, double>) return value;
        if constexpr (std::is_same_v<T, bool>) return int64_t{value};
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

}  // namespace

std::shared_ptr<const exporter::ArrowTable> arrow_table(const report::Table& table) {
  exporter::ArrowTableBuilder builder(table.name, table.rows.size());
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    if (is_text(table, i)) {
      builder.text(column.name, texts(table, i), exporter::Absent::kNull);
    } else if (column.kind == Kind::kTruth) {
      builder.own_truths(column.name, truths(table, i), exporter::Absent::kNull);
    } else if (is_real(table, i)) {
      builder.own(column.name, numbers(table, i, std::numeric_limits<double>::quiet_NaN()), exporter::Absent::kNull);
    } else {
      builder.own(column.name, numbers(table, i, kNoNumber), exporter::Absent::kNull);
    }
  }
  return std::move(builder).build();
}

report::Table first_rows(const exporter::ArrowTable& table, size_t rows) {
  report::Table result{.name = table.name(), .title = table.name()};
  for (const exporter::ArrowColumn& column : table.columns()) {
    const Kind kind = column.texts                                ? Kind::kText
                      : column.type == exporter::ArrowType::kBool ? Kind::kTruth
                                                                  : Kind::kNumber;
    result.columns.push_back({.name = column.name, .label = column.name, .kind = kind, .max_width = size_t{40}});
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

}  // namespace firelane::bind_trace
