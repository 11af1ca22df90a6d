#include "report/described.h"

#include <algorithm>

#include "base/json_writer.h"
#include "report/render.h"

namespace firelane::report {

namespace {

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {"text",    "number",    "duration", "bytes",
                                         "percent", "bandwidth", "small",    "truth"};
  return kNames[static_cast<size_t>(kind)];
}

void write_notes(JsonWriter& json, const std::vector<Note>& notes) {
  json.key("notes").begin_array();
  for (const Note& note : notes) {
    if (!note.text.empty()) json.value(note.text);
  }
  json.end_array();
}

void write_table(JsonWriter& json, const Table& table, size_t max_rows) {
  json.begin_object()
      .field("name", table.name)
      .field("title", table.title)
      .field("row_count", std::max(table.row_count, table.rows.size()));
  json.key("columns").begin_array();
  for (const Column& column : table.columns) {
    json.begin_object().field("name", column.name).field("label", column.label);
    json.field("kind", name_of(column.kind));
    if (!column.help.empty()) json.field("help", column.help);
    json.end_object();
  }
  json.end_array().key("rows").begin_array();
  for (size_t r = 0; r < std::min(table.rows.size(), max_rows); ++r) {
    json.begin_array();
    for (size_t c = 0; c < table.columns.size(); ++c) write_cell(json, table.rows[r][c], table.columns[c].kind);
    json.end_array();
  }
  json.end_array();
  write_notes(json, table.notes);
  json.end_object();
}

}  // namespace

std::string described(const Report& report, size_t max_rows) {
  JsonWriter json;
  json.begin_object().field("title", report.title);
  json.key("facts").begin_array();
  for (const Fact& fact : report.facts) {
    json.begin_object().field("name", fact.name).field("label", fact.label).field("kind", name_of(fact.kind));
    json.key("value");
    write_cell(json, fact.value, fact.kind);
    json.end_object();
  }
  json.end_array().key("tables").begin_array();
  for (const Table& table : report.tables) write_table(json, table, max_rows);
  json.end_array();
  write_notes(json, report.notes);
  return json.end_object().take();
}

}  // namespace firelane::report
