// Reports for a terminal: facts and tables in aligned columns, nothing that a name in
// the trace could use to forge a row or to drive the terminal.
#include <algorithm>

#include "base/visible_text.h"
#include "report/paint.h"
#include "report/render.h"

namespace firelane::report {

namespace {

void append_padded(std::string& line, const std::string& text, size_t width, bool right) {
  const size_t used = display_width(text);
  const std::string space(width > used ? width - used : 0, ' ');
  line += right ? space + text : text + space;
}

void end_line(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

void append_facts(std::string& out, const std::vector<Fact>& facts, const TextStyle& style) {
  size_t width = 0;
  for (const Fact& fact : facts) width = std::max(width, is_shown(fact) ? display_width(fact.label) : 0);
  for (const Fact& fact : facts) {
    if (!is_shown(fact)) continue;
    std::string label;
    append_padded(label, fact.label, width, false);
    out += painted(label, kDim, style) + "  " + visible_text(cell_text(fact.value, fact.kind)) + "\n";
  }
}

void append_rows(std::string& out, const Table& table, const TextStyle& style) {
  const std::vector<size_t> shown = shown_columns(table);
  std::vector<std::vector<std::string>> cells;
  std::vector<size_t> widths;
  for (const size_t c : shown) widths.push_back(display_width(table.columns[c].label));
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string>& line = cells.emplace_back();
    for (size_t i = 0; i < shown.size(); ++i) {
      const Column& column = table.columns[shown[i]];
      std::string text = visible_text(cell_text(row[shown[i]], column.kind));
      if (column.max_width != 0 && !style.wide) text = shorten_middle(text, column.max_width);
      widths[i] = std::max(widths[i], display_width(text));
      line.push_back(std::move(text));
    }
  }

  std::string header;
  std::string rule;
  for (size_t i = 0; i < shown.size(); ++i) {
    const Column& column = table.columns[shown[i]];
    append_padded(header, column.label, widths[i], is_right_aligned(column));
    rule += std::string(widths[i], '-');
    if (i + 1 < shown.size()) {
      header += "  ";
      rule += "  ";
    }
  }
  end_line(header);
  out += painted(header, kBold, style) + "\n" + painted(rule, kDim, style) + "\n";
  for (const std::vector<std::string>& row : cells) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      append_padded(line, row[i], widths[i], is_right_aligned(table.columns[shown[i]]));
      line += "  ";
    }
    end_line(line);
    out += line + "\n";
  }
}

void append_notes(std::string& out, const std::vector<Note>& notes, const TextStyle& style) {
  for (const Note& note : notes) out += painted("note: " + visible_text(note.line()), kDim, style) + "\n";
}

}  // namespace

bool is_shown(const Fact& fact) { return !fact.label.empty() && !std::holds_alternative<std::monostate>(fact.value); }

bool is_shown(const Table& table) { return !table.rows.empty() || !table.hide_if_empty; }

std::vector<size_t> shown_columns(const Table& table) {
  std::vector<size_t> shown;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const bool has_value = std::any_of(table.rows.begin(), table.rows.end(), [&](const std::vector<Cell>& row) {
      return !std::holds_alternative<std::monostate>(row[c]);
    });
    if (has_value || !table.columns[c].hide_if_empty) shown.push_back(c);
  }
  return shown;
}

bool is_right_aligned(const Column& column) {
  if (column.align != Align::kByKind) return column.align == Align::kRight;
  return column.kind != Kind::kText && column.kind != Kind::kTruth;
}

std::string render_text(const Report& report, const TextStyle& style) {
  std::string out;
  const auto new_section = [&] {
    if (!out.empty()) out += "\n";
  };
  if (!report.title.empty()) out += painted(visible_text(report.title), kBold, style) + "\n";
  append_facts(out, report.facts, style);
  for (const Table& table : report.tables) {
    if (!is_shown(table)) continue;
    new_section();
    if (!table.title.empty()) out += painted(visible_text(table.title), kBold, style) + "\n";
    append_rows(out, table, style);
    append_notes(out, table.notes, style);
  }
  if (!report.notes.empty()) {
    new_section();
    append_notes(out, report.notes, style);
  }
  return out;
}

}  // namespace firelane::report
