// Reports for programs: JSON and CSV, with plain numbers and every column.
#include <fmt/format.h>

#include <cmath>

#include "base/json_writer.h"
#include "report/render.h"

namespace firelane::report {

namespace {

// "" = not known. Shortest digits that read back as the same number.
std::string plain(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* integer = std::get_if<int64_t>(&cell)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&cell)) return std::isfinite(*number) ? fmt::format("{}", *number) : "";
  return "";
}

void append_field(std::string& line, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) line.append(c == '"' ? 2 : 1, c);
  line += '"';
}

void append_line(std::string& out, const std::vector<std::string>& fields) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i != 0) out += ',';
    append_field(out, fields[i]);
  }
  out += '\n';
}

std::string table_csv(const Table& table) {
  std::string out;
  std::vector<std::string> fields;
  for (const Column& column : table.columns) fields.push_back(column.name);
  append_line(out, fields);
  for (const std::vector<Cell>& row : table.rows) {
    fields.clear();
    for (const Cell& cell : row) fields.push_back(plain(cell));
    append_line(out, fields);
  }
  return out;
}

}  // namespace

void write_cell(JsonWriter& json, const Cell& cell, Kind kind) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    json.value(*text);
  } else if (const auto* integer = std::get_if<int64_t>(&cell)) {
    if (kind == Kind::kTruth) {
      json.value(*integer != 0);
    } else {
      json.value(*integer);
    }
  } else if (const auto* number = std::get_if<double>(&cell)) {
    json.value(*number);
  } else {
    json.null();
  }
}

std::string render_csv(const Report& report) {
  if (report.tables.size() == 1) return table_csv(report.tables[0]);
  std::string out = "table,row,field,value\n";
  for (const Fact& fact : report.facts) append_line(out, {"", "", fact.name, plain(fact.value)});
  for (const Table& table : report.tables) {
    for (size_t r = 0; r < table.rows.size(); ++r) {
      for (size_t c = 0; c < table.columns.size(); ++c) {
        append_line(out, {table.name, fmt::format("{}", r), table.columns[c].name, plain(table.rows[r][c])});
      }
    }
  }
  return out;
}

std::string render_json(const Report& report) {
  JsonWriter json(2);
  json.begin_object();
  std::vector<Note> notes = report.notes;
  for (const Fact& fact : report.facts) {
    json.key(fact.name);
    write_cell(json, fact.value, fact.kind);
  }
  for (const Table& table : report.tables) {
    json.key(table.name).begin_array();
    for (const std::vector<Cell>& row : table.rows) {
      JsonWriter line;  // a row stays on one line, for grep
      line.begin_object();
      for (size_t c = 0; c < table.columns.size(); ++c) {
        line.key(table.columns[c].name);
        write_cell(line, row[c], table.columns[c].kind);
      }
      json.raw(line.end_object().text());
    }
    json.end_array();
    notes.insert(notes.end(), table.notes.begin(), table.notes.end());
  }
  json.key("notes").begin_array();
  for (const Note& note : notes) json.value(note.line());
  json.end_array().end_object();
  return json.take() + "\n";
}

}  // namespace firelane::report
