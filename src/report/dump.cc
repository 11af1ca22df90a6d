#include "report/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/visible_text.h"
#include "report/dump_tables.h"

namespace firelane::report {

namespace {

// Events of the source are fetched for this many rows at a time: each fetch may have to
// read the source from its start.
constexpr size_t kRowsAtATime = 100'000;

// JSON without the white space between its tokens, so that it fits on a line.
std::string on_one_line(std::string_view json) {
  std::string out;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (!in_text && (c == ' ' || c == '\n' || c == '\r' || c == '\t')) continue;
    out += c;
    if (in_text && c == '\\' && i + 1 < json.size()) {
      out += json[++i];
    } else if (c == '"') {
      in_text = !in_text;
    }
  }
  return out;
}

// The source events of rows first .. last, "" if there is none.
Result<std::vector<std::string>> fetch_events(const Model& model, const DumpTable& table, Row first, Row last) {
  std::vector<std::string> events(last - first);
  if (table.source == nullptr || model.args == nullptr) return events;
  std::vector<Row> rows;
  for (Row row = first; row < last; ++row) {
    if (table.source(model, row) != kNoSource) rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [&](Row a, Row b) { return table.source(model, a) < table.source(model, b); });
  std::vector<uint64_t> sources;
  for (const Row row : rows) sources.push_back(table.source(model, row));
  FL_TRY_VOID(model.args->visit_events(
      sources, [&](size_t index, std::string_view json) { events[rows[index] - first] = on_one_line(json); }));
  return events;
}

Result<void> dump_table(const Model& model, const DumpTable& table, const DumpOptions& options, const DumpSink& sink) {
  const size_t size = table.size(model);
  const size_t rows = options.max_rows == 0 ? size : std::min(size, options.max_rows);
  for (size_t first = 0; first < rows; first += kRowsAtATime) {
    const size_t last = std::min(rows, first + kRowsAtATime);
    std::vector<std::string> events;
    if (options.args) {
      FL_TRY(events, fetch_events(model, table, static_cast<Row>(first), static_cast<Row>(last)));
    }
    std::string lines;
    for (size_t row = first; row < last; ++row) {
      RowLine line(model, options.form, table.name, row);
      table.write(model, static_cast<Row>(row), line);
      if (options.args && !events[row - first].empty()) line.raw_json("event", events[row - first]);
      lines += line.take();
      if (lines.size() < 1 << 16) continue;
      FL_TRY_VOID(sink(lines));
      lines.clear();
    }
    FL_TRY_VOID(sink(lines));
  }
  return {};
}

}  // namespace

std::vector<std::string> dump_table_names() {
  std::vector<std::string> names;
  for (const DumpTable& table : dump_tables()) names.emplace_back(table.name);
  return names;
}

Result<void> dump(const Model& model, const DumpOptions& options, const DumpSink& sink) {
  for (const DumpTable& table : dump_tables()) {
    const bool wanted = options.tables.empty() ||
                        std::find(options.tables.begin(), options.tables.end(), table.name) != options.tables.end();
    if (wanted) FL_TRY_VOID(dump_table(model, table, options, sink));
  }
  return {};
}

RowLine::RowLine(const Model& model, DumpForm form, std::string_view table, size_t row) : model_(model), form_(form) {
  if (as_json()) {
    json_.begin_object().field("table", table).field("row", row);
  } else {
    line_ = fmt::format("{} {}", table, row);
  }
}

void RowLine::bare(std::string_view column, std::string_view value) { line_ += fmt::format(" {}={}", column, value); }

void RowLine::absent(std::string_view column) {
  if (as_json()) {
    json_.key(column).null();
  } else {
    bare(column, "-");
  }
}

void RowLine::add(std::string_view column, int64_t value) {
  if (value == kNoNumber) return absent(column);
  if (as_json()) {
    json_.field(column, value);
  } else {
    bare(column, fmt::format("{}", value));
  }
}

void RowLine::add(std::string_view column, int32_t value) { add(column, value == -1 ? kNoNumber : int64_t{value}); }

void RowLine::add(std::string_view column, Row value) { add(column, value == kNoRow ? kNoNumber : int64_t{value}); }

void RowLine::add(std::string_view column, uint64_t value) {
  if (as_json()) {
    json_.field(column, value);
  } else {
    bare(column, fmt::format("{:#x}", value));
  }
}

// The float's own shortest digits: 0.060606, not 0.06060599908232689.
void RowLine::add(std::string_view column, float value) {
  if (value < 0) return absent(column);
  add(column, std::strtod(fmt::format("{}", value).c_str(), nullptr));
}

void RowLine::add(std::string_view column, double value) {
  if (as_json()) {
    json_.field(column, value);
  } else {
    bare(column, fmt::format("{}", value));
  }
}

void RowLine::add(std::string_view column, StringId value) {
  if (value == kNoString) return absent(column);
  add(column, model_.text(value));
}

void RowLine::add(std::string_view column, std::string_view value) {
  if (as_json()) {
    json_.field(column, value);
    return;
  }
  std::string escaped;
  for (const char c : visible_text(value)) escaped += c == '"' ? std::string("\\\"") : std::string(1, c);
  bare(column, "\"" + escaped + "\"");
}

void RowLine::add(std::string_view column, const TraceId& value) {
  if (value.number != kNoNumber) return add(column, value.number);
  add(column, value.text);
}

void RowLine::add(std::string_view column, const SliceRef& value) {
  if (value.row == kNoRow) return absent(column);
  add(column, fmt::format("{}:{}", value.on_device ? "device" : "host", value.row));
}

void RowLine::raw_json(std::string_view column, std::string_view json) {
  if (as_json()) {
    json_.key(column).raw(json);
  } else {
    bare(column, visible_text(json));
  }
}

std::string RowLine::take() {
  if (as_json()) return json_.end_object().take() + "\n";
  return std::move(line_) + "\n";
}

}  // namespace firelane::report
