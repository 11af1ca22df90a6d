// Reports as GitHub-flavoured Markdown: what a name contains is text, never markup.
#include <algorithm>

#include "base/visible_text.h"
#include "report/render.h"

namespace firelane::report {

namespace {

void append_table(std::string& out, const Table& table) {
  const std::vector<size_t> shown = shown_columns(table);
  std::string rule = "|";
  out += "|";
  for (const size_t c : shown) {
    out += " " + markdown_escaped(table.columns[c].label) + " |";
    rule += is_right_aligned(table.columns[c]) ? " ---: |" : " --- |";
  }
  out += "\n" + rule + "\n";
  for (const std::vector<Cell>& row : table.rows) {
    out += "|";
    for (const size_t c : shown) out += " " + markdown_escaped(cell_text(row[c], table.columns[c].kind)) + " |";
    out += "\n";
  }
}

void append_markdown_notes(std::string& out, const std::vector<Note>& notes) {
  for (const Note& note : notes) out += "\n> " + markdown_escaped(note.line()) + "\n";
}

}  // namespace

std::string markdown_escaped(std::string_view text) {
  std::string out;
  for (const char c : visible_text(text)) {
    if (c == '<' || c == '>' || c == '&') {
      out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
      continue;
    }
    if (std::string_view("\\`*_[]|~#").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string render_markdown(const Report& report) {
  std::string out;
  if (!report.title.empty()) out += "## " + markdown_escaped(report.title) + "\n";
  if (!report.title.empty() &&
      std::any_of(report.facts.begin(), report.facts.end(), [](const Fact& f) { return is_shown(f); }))
    out += "\n";
  for (const Fact& fact : report.facts) {
    if (!is_shown(fact)) continue;
    out += "- **" + markdown_escaped(fact.label) + "**: " + markdown_escaped(cell_text(fact.value, fact.kind)) + "\n";
  }
  for (const Table& table : report.tables) {
    if (!is_shown(table)) continue;
    if (!out.empty()) out += "\n";
    if (!table.title.empty()) out += "### " + markdown_escaped(table.title) + "\n\n";
    append_table(out, table);
    append_markdown_notes(out, table.notes);
  }
  append_markdown_notes(out, report.notes);
  return out;
}

}  // namespace firelane::report
