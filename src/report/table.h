// What a report holds, before it has a form: facts, tables and notes.
//
//   Table table{.name = "steps", .title = "Steps",
//               .columns = {{"step", "Step", Kind::kNumber}, {"duration_ns", "Duration", Kind::kDuration}}};
//   table.add({int64_t{3}, int64_t{120000}});
//   std::cout << render(Report{.tables = {table}}, Form::kText);
//
// One description gives every form: people read labels and units ("120.000 us"), programs
// read names and plain numbers ("duration_ns": 120000). A column's name is snake_case, ends
// in its unit, and is the same word in docs, JSON, CSV, Python and SQL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace firelane::report {

// What a cell holds; decides how people see it. Numbers stay plain in JSON and CSV.
enum class Kind : uint8_t {
  kText,
  kNumber,     // counts, ids: as it is; doubles with two digits
  kDuration,   // ns
  kBytes,      // bytes
  kPercent,    // 0..100
  kBandwidth,  // GB/s, 1 GB = 1e9 bytes
  kSmall,      // money, joules, grams: four digits that matter
  kTruth,      // 0 or 1: yes and no; false and true in JSON
};
enum class Align : uint8_t { kByKind, kLeft, kRight };  // by kind: text left, numbers right

using Cell = std::variant<std::monostate, int64_t, double, std::string>;  // monostate: not known

// A number that may be absent. `none` is how the model writes "absent" (kNoNumber, -1).
template <typename T>
Cell cell_unless(T number, T none) {
  if (number == none) return {};
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(number);
  } else {
    return static_cast<int64_t>(number);
  }
}

// A number that is known only under a condition: of the device, where there is one.
template <typename T>
Cell known_if(bool is_known, T number) {
  if (!is_known) return {};
  return number;
}

// A text that may be absent.
inline Cell text_or_none(std::string text) {
  if (text.empty()) return {};
  return text;
}

inline double percent_of(int64_t part, int64_t whole) {
  return whole <= 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

struct Column {
  std::string name;   // for programs: snake_case, with its unit: "duration_ns"
  std::string label;  // for people: "Duration"
  Kind kind = Kind::kText;
  Align align = Align::kByKind;
  // Text form only: longer cells lose their middle, unless the user asks for --wide. 0 = never.
  size_t max_width = 0;
  // Text and Markdown only: left out when no row has a value. Programs always get every column.
  bool hide_if_empty = false;
  std::string help{};  // a sentence for those who meet the term for the first time: the page's tooltip; may be ""
};

// A remark about the answer. `flags` is what to do about it on the command line, and is left out elsewhere.
struct Note {
  Note(std::string words, std::string command_line = "") : text(std::move(words)), flags(std::move(command_line)) {}
  Note(const char* words) : text(words) {}

  std::string line() const { return text.empty() || flags.empty() ? text + flags : text + "; " + flags; }

  std::string text;
  std::string flags;
};

struct Table {
  std::string name = "rows";  // the JSON field that holds the rows
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<Note> notes;     // what the numbers leave out, and what to do about it
  bool hide_if_empty = false;  // text and Markdown only: no row, no table
  size_t row_count = 0;        // how many there are, when `rows` holds only the first; 0 = as many as `rows`

  // REQUIRES: one cell per column.
  void add(std::vector<Cell> row);
};

// One named value outside of any table. People do not see those that are not known.
struct Fact {
  std::string name;
  std::string label;  // "" = for programs only
  Kind kind = Kind::kText;
  Cell value;
};

struct Report {
  std::string title;
  std::vector<Fact> facts;
  std::vector<Table> tables;
  std::vector<Note> notes;
};

enum class Form : uint8_t { kText, kMarkdown, kCsv, kJson };

struct TextStyle {
  bool color = false;
  bool wide = false;  // do not shorten cells
};

// Ends with a line break. JSON: one object; facts are its fields, each table's rows a list of
// objects under the table's name, all notes under "notes". CSV (quoting of RFC 4180; lines end
// in LF, for grep and cut): the table of a report that has one, without its facts; any other
// report becomes rows of table,row,field,value.
std::string render(const Report& report, Form form, const TextStyle& style = {});
std::string render(const Table& table, Form form, const TextStyle& style = {});

// A cell as people see it: "12.345 us", "-" when not known. Not yet made visible or shortened.
std::string cell_text(const Cell& cell, Kind kind);

}  // namespace firelane::report
