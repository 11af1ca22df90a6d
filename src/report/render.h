// The four forms of a report; report/table.h describes them and is what callers include.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "report/table.h"

namespace firelane::report {

std::string render_text(const Report& report, const TextStyle& style);  // render_text.cc
std::string render_markdown(const Report& report);                      // render_markdown.cc
std::string render_csv(const Report& report);                           // render_data.cc
std::string render_json(const Report& report);                          // render_data.cc

// A cell as a JSON value.
void write_cell(JsonWriter& json, const Cell& cell, Kind kind);  // render_data.cc
// `text` as words of a Markdown page, on one line.
std::string markdown_escaped(std::string_view text);

// What people see of a report: facts with a label and a value, tables that do not hide.
bool is_shown(const Fact& fact);
bool is_shown(const Table& table);
// Indices of the columns that people see: all but the empty ones that may hide.
std::vector<size_t> shown_columns(const Table& table);
bool is_right_aligned(const Column& column);

}  // namespace firelane::report
