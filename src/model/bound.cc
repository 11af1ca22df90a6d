// Bounds what analyses add up. A damaged or hostile file can hold sizes of any number; sums of them would not fit 64
// bits, and no analysis should have to care. All values of a column of sizes add up to less than 2^61.
#include <array>
#include <cmath>
#include <type_traits>

#include "base/parallel.h"
#include "model/assemble.h"

namespace firelane {

namespace {

// For each column of sizes in a table, in order.
template <typename RawRow>
using Sums = std::array<double, RawRow::kSizeCount>;

template <typename RawRow>
void add_row(const RawRow& row, Sums<RawRow>& sums) {
  size_t column = 0;
  RawRow::each_field(row, [&]<Use use, typename T>(UseIs<use>, const T& value) {
    if constexpr (is_size(use)) {
      if (value != kNoNumber) sums[column] += std::abs(static_cast<double>(value));
      ++column;
    }
  });
}

// Rows that are shared count as often as they are used.
template <typename RawRow>
void add_up(const RawPart& part, const RawVector<RawRow>& rows, Sums<RawRow>& sums) {
  if constexpr (kIsShared<RawRow>) {
    for (const Row row : part.order_of(rows)) add_row(rows[row], sums);
    if (!part.order_of(rows).empty()) return;
  }
  for (const RawRow& row : rows) add_row(row, sums);
}

// Values beyond the limit of their column become absent, or 0 where there is no absence. How many that were.
template <typename RawRow>
uint64_t blank_beyond(RawVector<RawRow>& rows, const Sums<RawRow>& limits) {
  uint64_t blanked = 0;
  for (RawRow& row : rows) {
    size_t column = 0;
    RawRow::each_field(row, [&]<Use use, typename T>(UseIs<use>, T& value) {
      if constexpr (is_size(use)) {
        const bool is_beyond = value != kNoNumber && std::abs(static_cast<double>(value)) > limits[column];
        if (is_beyond) value = blank<T>(use);
        blanked += is_beyond ? 1 : 0;
        ++column;
      }
    });
  }
  return blanked;
}

struct AllSums {
#define FL_MEMBER(RawRow, name) Sums<RawRow> name{};
  FL_RAW_TABLES(FL_MEMBER, FL_MEMBER)
#undef FL_MEMBER
};

template <typename RawRow>
void bound(RawTrace& raw, RawVector<RawRow> RawPart::* table, const std::vector<AllSums>& of_parts,
           Sums<RawRow> AllSums::* sums, LossCounts& losses) {
  Sums<RawRow> limits;
  limits.fill(HUGE_VAL);
  size_t rows = 0;
  for (const RawPart& part : raw.parts) rows += part.count_of(part.*table);
  bool is_needed = false;
  for (size_t column = 0; column < limits.size(); ++column) {
    double sum = 0;
    for (const AllSums& of_part : of_parts) sum += (of_part.*sums)[column];
    if (sum < kMaxColumnSum) continue;
    limits[column] = kMaxColumnSum / static_cast<double>(rows);
    is_needed = true;
  }
  if (!is_needed) return;
  for (RawPart& part : raw.parts) losses[Stat::kSizeOutOfRange] += blank_beyond(part.*table, limits);
}

}  // namespace

void bound_sizes(RawTrace& raw, Model& model, unsigned threads) {
  std::vector<AllSums> of_parts(raw.parts.size());
  parallel_ranges(
      raw.parts.size(), threads,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
#define FL_ADD_UP(RawRow, name) add_up(raw.parts[i], raw.parts[i].name, of_parts[i].name);
          FL_RAW_TABLES(FL_ADD_UP, FL_ADD_UP)
#undef FL_ADD_UP
        }
      },
      1);
#define FL_BOUND(RawRow, name) bound(raw, &RawPart::name, of_parts, &AllSums::name, model.losses);
  FL_RAW_TABLES(FL_BOUND, FL_BOUND)
#undef FL_BOUND
}

}  // namespace firelane
