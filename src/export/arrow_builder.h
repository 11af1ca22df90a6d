// Puts an ArrowTable together, column by column.
//
//   ArrowTableBuilder table("steps", model->steps.size());
//   table.keep(model);
//   table.view("start_ns", std::span(model->steps.start_ns));      // the model's own memory
//   table.own("share", std::vector<double>{...});                  // built for this table
//   std::shared_ptr<const ArrowTable> done = std::move(table).build();
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "export/arrow.h"

namespace firelane::exporter {

enum class Absent : bool { kNever, kNull };  // may a column have nulls: ArrowColumn::nullable

template <typename T>
constexpr ArrowType arrow_type() {
  if constexpr (std::is_enum_v<T>) {
    return arrow_type<std::underlying_type_t<T>>();
  } else if constexpr (std::is_same_v<T, double>) {
    return ArrowType::kDouble;
  } else if constexpr (std::is_same_v<T, float>) {
    return ArrowType::kFloat;
  } else {
    static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>);
    switch (sizeof(T)) {
      case 1: return ArrowType::kInt8;  // enums of few values: signed, as pandas wants its categories
      case 2: return ArrowType::kUInt16;
      case 4: return std::is_signed_v<T> ? ArrowType::kInt32 : ArrowType::kUInt32;
      default: return std::is_signed_v<T> ? ArrowType::kInt64 : ArrowType::kUInt64;
    }
  }
}

class ArrowTableBuilder {
 public:
  ArrowTableBuilder(std::string name, size_t rows) : name_(std::move(name)), rows_(rows) {}

  // What view()ed columns lie in.
  void keep(std::shared_ptr<const void> owner) { owners_->push_back(std::move(owner)); }

  // REQUIRES: `values` live in something that was given to keep().
  template <typename T>
  void view(std::string_view name, std::span<const T> values, Absent absent = Absent::kNever) {
    add(name, arrow_type<T>(), values.data(), values.size(), absent, nullptr);
  }

  template <typename T>
  void own(std::string_view name, std::vector<T> values, Absent absent = Absent::kNever) {
    view(name, kept(std::move(values)), absent);
  }

  // 0 and 1, or negative when absent.
  void own_truths(std::string_view name, std::vector<int8_t> values, Absent absent = Absent::kNever) {
    const std::span<const int8_t> owned = kept(std::move(values));
    add(name, ArrowType::kBool, owned.data(), owned.size(), absent, nullptr);
  }

  // Indices into `texts`; absent: see ArrowColumn::nullable.
  template <typename T>
    requires(sizeof(T) == 1 || sizeof(T) == 4)
  void view_words(std::string_view name, std::span<const T> values, std::shared_ptr<const ArrowTexts> texts,
                  Absent absent = Absent::kNever) {
    // Signed: pandas takes no unsigned categories, and no pool has 2^31 texts.
    add(name, sizeof(T) == 1 ? ArrowType::kInt8 : ArrowType::kInt32, values.data(), values.size(), absent,
        std::move(texts));
  }

  template <typename T>
  void own_words(std::string_view name, std::vector<T> values, std::shared_ptr<const ArrowTexts> texts,
                 Absent absent = Absent::kNever) {
    view_words(name, kept(std::move(values)), std::move(texts), absent);
  }

  void text(std::string_view name, ArrowTexts texts, Absent absent = Absent::kNever) {
    const size_t size = texts.size();
    add(name, ArrowType::kText, nullptr, size, absent, std::make_shared<const ArrowTexts>(std::move(texts)));
  }

  std::shared_ptr<const ArrowTable> build() && {
    return std::make_shared<const ArrowTable>(std::move(name_), rows_, std::move(columns_), std::move(owners_));
  }

 private:
  template <typename T>
  std::span<const T> kept(std::vector<T> values) {
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    keep(owner);
    return *owner;
  }

  void add(std::string_view name, ArrowType type, const void* values, size_t size, Absent absent,
           std::shared_ptr<const ArrowTexts> texts) {
    FL_CHECK(size == rows_, "all columns of a table have the same length");
    columns_.push_back({.name = std::string(name),
                        .type = type,
                        .values = values,
                        .nullable = absent == Absent::kNull,
                        .texts = std::move(texts)});
  }

  std::string name_;
  size_t rows_;
  std::vector<ArrowColumn> columns_;
  std::shared_ptr<std::vector<std::shared_ptr<const void>>> owners_ =
      std::make_shared<std::vector<std::shared_ptr<const void>>>();
};

}  // namespace firelane::exporter
