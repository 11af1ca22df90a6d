#include "export/arrow_tables.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "export/arrow_builder.h"

namespace firelane::exporter {

namespace {

std::shared_ptr<const ArrowTexts> words(std::initializer_list<std::string_view> list) {
  auto texts = std::make_shared<ArrowTexts>();
  for (const std::string_view word : list) texts->add(word);
  return texts;
}

template <typename T>
std::vector<T> in_full(const ColumnView<T>& values) {
  return values.size() == 0 ? std::vector<T>() : std::vector<T>(values.size(), values[0]);
}

// One table of the model: the builder plus the pool's dictionary.
struct Maker {
  std::shared_ptr<const ArrowTexts> strings;
  ArrowTableBuilder table;

  // The model's own memory, unless it stores one value for all rows.
  template <typename T>
  void add(std::string_view name, const ColumnView<T>& values, Absent absent) {
    if (!values.is_uniform()) return table.view(name, values.cells(), absent);
    table.own(name, in_full(values), absent);
  }
  void add(std::string_view name, const ColumnView<StringId>& values, Absent absent) {
    if (!values.is_uniform()) return table.view_words(name, values.cells(), strings, absent);
    table.own_words(name, in_full(values), strings, absent);
  }
  // Where a kind may be absent, its first enumerator says so, and becomes -1.
  void add(std::string_view name, const KindColumn& kinds, Absent absent) {
    const size_t first = absent == Absent::kNever ? 0 : 1;
    auto texts = std::make_shared<ArrowTexts>();
    for (const std::string_view word : kinds.words.subspan(first)) texts->add(word);
    const ColumnView<uint8_t>& numbers = kinds.numbers;
    if (absent == Absent::kNever && !numbers.is_uniform()) {
      return table.view_words(name, numbers.cells(), std::move(texts));
    }
    std::vector<int8_t> known(numbers.size());
    for (size_t row = 0; row < known.size(); ++row) known[row] = static_cast<int8_t>(numbers[row] - first);
    table.own_words(name, std::move(known), std::move(texts), absent);
  }
  // An id that is a number, or in odd traces a text: two columns, one of them null.
  void add(std::string_view name, const ColumnView<TraceId>& values, Absent absent) {
    std::vector<int64_t> numbers;
    std::vector<StringId> texts;
    for (size_t row = 0; row < values.size(); ++row) {
      const TraceId& id = values[row];
      numbers.push_back(id.text == kNoString ? id.number : kNoNumber);
      texts.push_back(id.text);
    }
    table.own(name, std::move(numbers), absent);
    table.own_words(std::string(name) + "_text", std::move(texts), strings, absent);
  }
  void add(std::string_view name, const ColumnView<SliceRef>& values, Absent absent) {
    std::vector<Row> slices;
    std::vector<int8_t> sides;
    for (size_t row = 0; row < values.size(); ++row) {
      const SliceRef& ref = values[row];
      slices.push_back(ref.row);
      sides.push_back(ref.row == kNoRow ? int8_t{-1} : static_cast<int8_t>(ref.on_device));
    }
    table.own_words(std::string(name) + "_table", std::move(sides), words({"host_slices", "device_slices"}), absent);
    table.own(std::string(name) + "_slice", std::move(slices), absent);
  }
};

// Only what was counted at all; the row names, meanings and remedies are those of model/stats.h.
std::shared_ptr<const ArrowTable> losses_table(const LossCounts& losses) {
  ArrowTexts names;
  ArrowTexts meanings;
  ArrowTexts remedies;
  std::vector<uint64_t> counts;
  std::vector<int8_t> severities;
  for (size_t i = 0; i < kStatCount; ++i) {
    if (losses.counts[i] == 0) continue;
    names.add(kStats[i].name);
    severities.push_back(static_cast<int8_t>(kStats[i].severity));
    counts.push_back(losses.counts[i]);
    meanings.add(kStats[i].meaning);
    remedies.add(kStats[i].remedy);
  }
  ArrowTableBuilder table("losses", counts.size());
  table.text("name", std::move(names));
  table.own_words("severity", std::move(severities),
                  words({name_of(Severity::kInfo), name_of(Severity::kWarning), name_of(Severity::kDataLoss)}));
  table.own("count", std::move(counts));
  table.text("meaning", std::move(meanings));
  table.text("remedy", std::move(remedies));
  return std::move(table).build();
}

std::shared_ptr<const std::vector<Row>> row_numbers(size_t count) {
  auto ids = std::make_shared<std::vector<Row>>(count);
  std::iota(ids->begin(), ids->end(), Row{0});
  return ids;
}

std::string sentence(std::string_view meaning) {
  std::string text = std::string(meaning) + ".";
  text[0] = static_cast<char>(std::toupper(text[0]));
  return text;
}

}  // namespace

const std::vector<ArrowTableInfo>& arrow_table_list() {
  static const std::vector<ArrowTableInfo> list = [] {
    std::vector<ArrowTableInfo> all;
    for (const TableInfo& table : model_tables()) all.push_back({std::string(table.name), sentence(table.meaning)});
    all.push_back({"losses", "What was skipped, repaired or left unlinked, with a remedy."});
    return all;
  }();
  return list;
}

void ArrowTables::build_shared() {
  auto strings = std::make_shared<ArrowTexts>();
  for (size_t i = 0; i < model_->strings.size(); ++i) strings->add(model_->strings.view(static_cast<StringId>(i)));
  strings_ = std::move(strings);
  size_t longest = 0;
  for (const TableInfo& table : model_tables()) longest = std::max(longest, table.size(*model_));
  row_ids_ = row_numbers(longest);
}

std::shared_ptr<const ArrowTable> ArrowTables::made_of(const TableInfo& table) {
  if (!strings_) build_shared();
  const size_t rows = table.size(*model_);
  if (rows > row_ids_->size()) row_ids_ = row_numbers(rows);
  Maker maker{strings_, ArrowTableBuilder(std::string(table.name), rows)};
  maker.table.keep(model_);
  maker.table.keep(row_ids_);
  maker.table.view("id", std::span(*row_ids_).first(rows));
  for (const ColumnInfo& column : table.columns) {
    if (!is_shown(column.use)) continue;
    const Absent absent = is_optional(column.use) ? Absent::kNull : Absent::kNever;
    visit_column(column, table.of(*model_), [&](const auto& values) { maker.add(column.name, values, absent); });
  }
  return std::move(maker.table).build();
}

std::shared_ptr<const ArrowTable> ArrowTables::table(size_t index) {
  const std::scoped_lock lock(mutex_);
  auto& result = tables_[index];
  if (result) return result;
  return result = index == model_tables().size() ? losses_table(model_->losses) : made_of(model_tables()[index]);
}

}  // namespace firelane::exporter
