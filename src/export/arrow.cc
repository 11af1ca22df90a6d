#include "export/arrow.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace firelane::exporter {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Calls `use` with the column's values as a typed pointer.
template <typename Use>
auto with_values(const ArrowColumn& column, const Use& use) {
  switch (column.type) {
    case ArrowType::kBool:
    case ArrowType::kInt8: return use(static_cast<const int8_t*>(column.values));
    case ArrowType::kUInt16: return use(static_cast<const uint16_t*>(column.values));
    case ArrowType::kInt32: return use(static_cast<const int32_t*>(column.values));
    case ArrowType::kUInt32: return use(static_cast<const uint32_t*>(column.values));
    case ArrowType::kInt64: return use(static_cast<const int64_t*>(column.values));
    case ArrowType::kUInt64: return use(static_cast<const uint64_t*>(column.values));
    case ArrowType::kFloat: return use(static_cast<const float*>(column.values));
    case ArrowType::kDouble: return use(static_cast<const double*>(column.values));
    case ArrowType::kText: break;
  }
  check_failed(__FILE__, __LINE__, "a text column has texts, not values");
}

template <typename T>
bool is_absent(T value, bool has_texts) {
  if constexpr (std::is_same_v<T, double>) return std::isnan(value);
  if constexpr (std::is_same_v<T, int64_t>) return value == std::numeric_limits<int64_t>::min();
  if constexpr (std::is_unsigned_v<T>) return value == std::numeric_limits<T>::max();
  if constexpr (std::is_same_v<T, int32_t>) return has_texts ? value == 0 : value < 0;
  return value < T{0};
}

// One bit a row, and how many of them are set.
template <typename Test>
std::pair<std::vector<uint8_t>, size_t> pack_bits(size_t rows, const Test& test) {
  std::vector<uint8_t> bits((rows + 7) / 8);
  size_t set = 0;
  for (size_t row = 0; row < rows; ++row) {
    const bool bit = test(row);
    set += bit;
    bits[row / 8] = static_cast<uint8_t>(bits[row / 8] | static_cast<unsigned>(bit) << (row % 8));
  }
  return {std::move(bits), set};
}

std::pair<std::vector<uint8_t>, size_t> pack_valid(const ArrowColumn& column, size_t rows) {
  if (column.type == ArrowType::kText) {
    return pack_bits(rows, [&](size_t row) { return !(*column.texts)[row].empty(); });
  }
  return with_values(column, [&](const auto* values) {
    const bool has_texts = column.texts != nullptr;
    return pack_bits(rows, [=](size_t row) { return !is_absent(values[row], has_texts); });
  });
}

ArrowTable::Bitmaps bitmaps_of(const ArrowColumn& column, size_t rows) {
  ArrowTable::Bitmaps result;
  if (column.nullable) {
    auto [bits, valid] = pack_valid(column, rows);
    result.null_count = static_cast<int64_t>(rows - valid);
    if (result.null_count > 0) result.valid = std::move(bits);
  }
  if (column.type == ArrowType::kBool) {
    const auto* values = static_cast<const int8_t*>(column.values);
    result.values = pack_bits(rows, [=](size_t row) { return values[row] > 0; }).first;
  }
  return result;
}

}  // namespace

void ArrowTexts::add(std::string_view text) {
  while (!text.empty()) {
    size_t good = 0;
    size_t length = 0;
    while ((length = utf8_length(text.substr(good))) != 0) good += length;
    bytes_.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) break;
    bytes_.append(kReplacement);
    text.remove_prefix(1);
  }
  offsets_.push_back(static_cast<int64_t>(bytes_.size()));
}

ArrowTable::ArrowTable(std::string name, size_t rows, std::vector<ArrowColumn> columns,
                       std::shared_ptr<const void> owner)
    : name_(std::move(name)), rows_(rows), columns_(std::move(columns)), owner_(std::move(owner)) {
  for (const ArrowColumn& column : columns_) {
    FL_CHECK(column.type != ArrowType::kText || (column.texts && column.texts->size() == rows_),
             "a text column has one text a row");
  }
}

ArrowCell ArrowTable::cell(size_t column_index, size_t row) const {
  const ArrowColumn& column = columns_[column_index];
  if (column.type == ArrowType::kText) {
    const std::string_view text = (*column.texts)[row];
    return column.nullable && text.empty() ? ArrowCell{} : ArrowCell{text};
  }
  return with_values(column, [&](const auto* values) -> ArrowCell {
    const auto value = values[row];
    using T = std::remove_const_t<decltype(value)>;
    if (column.nullable && is_absent(value, column.texts != nullptr)) return {};
    if (column.texts) return (*column.texts)[static_cast<size_t>(value)];
    if (column.type == ArrowType::kBool) return value > T{0};
    if constexpr (std::is_floating_point_v<T>) return static_cast<double>(value);
    if constexpr (std::is_unsigned_v<T>) return static_cast<uint64_t>(value);
    return static_cast<int64_t>(value);
  });
}

const ArrowTable::Bitmaps& ArrowTable::bitmaps(size_t column) const {
  std::call_once(bitmaps_once_, [&] {
    for (const ArrowColumn& each : columns_) bitmaps_.push_back(bitmaps_of(each, rows_));
  });
  return bitmaps_[column];
}

}  // namespace firelane::exporter
