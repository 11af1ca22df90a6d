#include "export/arrow_tables.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "export/arrow_builder.h"
#include "model/columns.h"

namespace firelane::exporter {

namespace {

std::shared_ptr<const ArrowTexts> words(std::initializer_list<std::string_view> list) {
  auto texts = std::make_shared<ArrowTexts>();
  for (const std::string_view word : list) texts->add(word);
  return texts;
}

// The words of a kind from the enumerator `first` on.
template <IsKind Kind>
std::shared_ptr<const ArrowTexts> kind_words(size_t first) {
  auto texts = std::make_shared<ArrowTexts>();
  for (size_t i = first; i < count_of(Kind{}); ++i) texts->add(name_of(static_cast<Kind>(i)));
  return texts;
}

// One table of the model: the builder plus the pool's dictionary.
struct Maker {
  std::shared_ptr<const ArrowTexts> strings;
  ArrowTableBuilder table;

  template <typename T>
  void add(std::string_view name, const std::vector<T>& values, Absent absent) {
    if constexpr (std::is_same_v<T, StringId>) {
      table.view_words(name, values, strings, absent);
    } else if constexpr (IsKind<T>) {
      if (absent == Absent::kNever) return table.view_words(name, values, kind_words<T>(0));
      std::vector<int8_t> known;  // the first enumerator, "absent", becomes -1
      for (const T kind : values) known.push_back(static_cast<int8_t>(static_cast<int>(kind) - 1));
      table.own_words(name, std::move(known), kind_words<T>(1), absent);
    } else {
      table.view(name, values, absent);
    }
  }
  // An id that is a number, or in odd traces a text: two columns, one of them null.
  void add(std::string_view name, const std::vector<TraceId>& values, Absent absent) {
    std::vector<int64_t> numbers;
    std::vector<StringId> texts;
    for (const TraceId& id : values) {
      numbers.push_back(id.text == kNoString ? id.number : kNoNumber);
      texts.push_back(id.text);
    }
    table.own(name, std::move(numbers), absent);
    table.own_words(std::string(name) + "_text", std::move(texts), strings, absent);
  }
  void add(std::string_view name, const std::vector<SliceRef>& values, Absent absent) {
    std::vector<Row> rows;
    std::vector<int8_t> sides;
    for (const SliceRef& ref : values) {
      rows.push_back(ref.row);
      sides.push_back(ref.row == kNoRow ? int8_t{-1} : static_cast<int8_t>(ref.on_device));
    }
    table.own_words(std::string(name) + "_table", std::move(sides), words({"host_slices", "device_slices"}), absent);
    table.own(std::string(name) + "_slice", std::move(rows), absent);
  }
  // The scope of an instant.
  void add(std::string_view name, const std::vector<char>& values, Absent absent) {
    std::vector<int8_t> scopes;
    for (const char scope : values) {
      scopes.push_back(scope == 't' ? int8_t{0} : scope == 'p' ? int8_t{1} : scope == 'g' ? int8_t{2} : int8_t{-1});
    }
    table.own_words(name, std::move(scopes), words({"thread", "process", "global"}), absent);
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

}  // namespace

void ArrowTables::build_shared() {
  auto strings = std::make_shared<ArrowTexts>();
  for (size_t i = 0; i < model_->strings.size(); ++i) strings->add(model_->strings.view(static_cast<StringId>(i)));
  strings_ = std::move(strings);
  size_t longest = 0;
  each_model_table([&](const auto& table) { longest = std::max(longest, table.of(*model_).size()); });
  auto ids = std::make_shared<std::vector<Row>>(longest);
  std::iota(ids->begin(), ids->end(), Row{0});
  row_ids_ = std::move(ids);
}

std::shared_ptr<const ArrowTable> ArrowTables::table(size_t index) {
  const std::scoped_lock lock(mutex_);
  if (tables_[index]) return tables_[index];
  if (!strings_) build_shared();
  auto& result = tables_[index];
  const std::string_view name = kArrowTables[index].name;
  if (name == "losses") result = losses_table(model_->losses);
  each_model_table([&](const auto& table) {
    if (table.name != name) return;
    const auto& rows = table.of(*model_);
    Maker maker{strings_, ArrowTableBuilder(std::string(name), rows.size())};
    maker.table.keep(model_);
    maker.table.keep(row_ids_);
    maker.table.view_first("id", *row_ids_);
    each_column(table.kColumns, [&]<typename C>(const C& column) {
      maker.add(column.name, column.of(rows), C::kOptional ? Absent::kNull : Absent::kNever);
    });
    result = std::move(maker.table).build();
  });
  FL_CHECK(result, "every table of kArrowTables is built here");
  return result;
}

}  // namespace firelane::exporter
