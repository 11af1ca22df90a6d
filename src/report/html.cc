#include "report/html.h"

#include <algorithm>

#include "base/visible_text.h"
#include "report/render.h"

namespace firelane::report {

namespace {

void append_cell(std::string& out, std::string_view tag, std::string_view text) {
  out.append("<").append(tag).append(">").append(html_escaped(text)).append("</").append(tag).append(">");
}

void append_table(std::string& out, const Table& table, size_t max_rows) {
  const std::vector<size_t> shown = shown_columns(table);
  if (!table.title.empty()) out += "<p><strong>" + html_escaped(table.title) + "</strong></p>\n";
  out += "<table>\n<thead>\n<tr>";
  for (const size_t c : shown) append_cell(out, "th", table.columns[c].label);
  out += "</tr>\n</thead>\n<tbody>\n";
  for (size_t row = 0; row < std::min(max_rows, table.rows.size()); ++row) {
    out += "<tr>";
    for (const size_t c : shown) append_cell(out, "td", cell_text(table.rows[row][c], table.columns[c].kind));
    out += "</tr>\n";
  }
  out += "</tbody>\n</table>\n";
  if (table.rows.size() > max_rows) {
    out += "<p>the first " + std::to_string(max_rows) + " of " + std::to_string(table.rows.size()) + " rows</p>\n";
  }
}

void append_html_notes(std::string& out, const std::vector<Note>& notes) {
  for (const Note& note : notes) {
    if (!note.text.empty()) out += "<p><i>" + html_escaped(note.text) + "</i></p>\n";
  }
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : visible_text(text)) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string html(const Report& report, const HtmlOptions& options) {
  std::string out;
  if (!report.title.empty()) out += "<p><strong>" + html_escaped(report.title) + "</strong></p>\n";
  for (const Fact& fact : report.facts) {
    if (!is_shown(fact)) continue;
    out += "<div><strong>" + html_escaped(fact.label) + "</strong>: " + html_escaped(cell_text(fact.value, fact.kind)) +
           "</div>\n";
  }
  for (const Table& table : report.tables) {
    if (!is_shown(table)) continue;
    append_table(out, table, options.max_rows);
    append_html_notes(out, table.notes);
  }
  append_html_notes(out, report.notes);
  return out;
}

}  // namespace firelane::report
