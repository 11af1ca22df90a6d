// The columns of a table in memory.
//
// Most formats leave most optional columns empty, and many have one value for all rows (the only GPU, the category of
// kernels). A Column stores a value that all rows have once: reading is an index and a mask, the same for both
// cases, without a branch. Columns that each row fills are plain arrays (Cells).
//
//   Column<int64_t> flops;
//   flops.assign(rows, kNoNumber);  // one cell, whatever `rows` is
//   flops[7] = 12;                  // now a cell for each row
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/lazy_allocator.h"

namespace firelane {

template <typename T>
using Cells = std::vector<T, LazyAllocator<T>>;

// The same bits: -0.0 is another value than 0.0, and a NaN the same as itself.
template <typename T>
constexpr bool is_same_value(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  } else {
    return a == b;
  }
}

// Any column, to read: of a Column or of Cells.
template <typename T>
struct ColumnView {
  const T* data = nullptr;
  size_t rows = 0;
  size_t mask = ~size_t{0};  // 0: one cell for all rows

  const T& operator[](size_t row) const { return data[row & mask]; }
  size_t size() const { return rows; }
  bool is_uniform() const { return mask == 0; }
  // A cell for each row, or one for all.
  std::span<const T> cells() const { return {data, is_uniform() && rows > 0 ? 1 : rows}; }
};

template <typename T>
class Column {
 public:
  using value_type = T;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t row) const { return cells_[row & mask_]; }
  ColumnView<T> view() const { return {cells_.data(), size_, mask_}; }
  bool is_uniform() const { return mask_ == 0; }

  // The cell of a row that may be written.
  class Cell {
   public:
    Cell(Column& column, size_t row) : column_(column), row_(row) {}
    Cell(const Cell&) = default;
    ~Cell() = default;
    operator T() const { return std::as_const(column_)[row_]; }  // NOLINT(google-explicit-constructor): is a T
    Cell& operator=(const T& value) {
      column_.set(row_, value);
      return *this;
    }
    Cell& operator=(const Cell& other) { return *this = static_cast<T>(other); }

   private:
    Column& column_;
    size_t row_;
  };
  Cell operator[](size_t row) { return {*this, row}; }

  // Several threads may set different rows of a column with a cell for each (after spread()), and set the value that is
  // there already.
  void set(size_t row, const T& value) {
    if (mask_ == 0) {
      if (is_same_value(value, cells_[0])) return;
      unfold();
    }
    cells_[row] = value;
  }

  // All rows have `value`.
  [[gnu::noinline]] void assign(size_t rows, const T& value) {
    Cells<T>(1, value).swap(cells_);
    size_ = rows;
    mask_ = 0;
  }
  // A cell for each of `rows`, with anything in it: set all of them.
  [[gnu::noinline]] void spread(size_t rows) {
    Cells<T>().swap(cells_);
    cells_.resize(rows);
    size_ = rows;
    mask_ = ~size_t{0};
  }
  // Rows that are added have `value`.
  [[gnu::noinline]] void resize(size_t rows, const T& value) {
    if (size_ == 0 || rows == 0) return assign(rows, value);
    if (mask_ == 0 && is_same_value(value, cells_[0])) {
      size_ = rows;
      return;
    }
    if (mask_ == 0) unfold();
    cells_.resize(rows, value);
    size_ = rows;
  }

  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;

    Iterator() = default;
    Iterator(const ColumnView<T>& column, size_t row) : column_(column), row_(row) {}
    const T& operator*() const { return column_[row_]; }
    const T& operator[](std::ptrdiff_t by) const { return column_[row_ + static_cast<size_t>(by)]; }
    Iterator& operator+=(std::ptrdiff_t by) {
      row_ += static_cast<size_t>(by);
      return *this;
    }
    Iterator& operator-=(std::ptrdiff_t by) { return *this += -by; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this += -1; }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    Iterator operator--(int) {
      const Iterator before = *this;
      --*this;
      return before;
    }
    friend Iterator operator+(Iterator at, std::ptrdiff_t by) { return at += by; }
    friend Iterator operator+(std::ptrdiff_t by, Iterator at) { return at += by; }
    friend Iterator operator-(Iterator at, std::ptrdiff_t by) { return at -= by; }
    friend std::ptrdiff_t operator-(const Iterator& a, const Iterator& b) {
      return static_cast<std::ptrdiff_t>(a.row_) - static_cast<std::ptrdiff_t>(b.row_);
    }
    bool operator==(const Iterator& other) const { return row_ == other.row_; }
    auto operator<=>(const Iterator& other) const { return row_ <=> other.row_; }

   private:
    ColumnView<T> column_;
    size_t row_ = 0;
  };
  Iterator begin() const { return {view(), 0}; }
  Iterator end() const { return {view(), size_}; }

 private:
  // A cell for each row instead of one for all. Out of line, as all that is rare here: it would be repeated for each
  // column of each table, which takes the compiler longer than all else.
  [[gnu::noinline]] void unfold() {
    const T common = cells_[0];
    cells_.assign(size_, common);
    mask_ = ~size_t{0};
  }

  Cells<T> cells_;  // one while all rows have the same
  size_t size_ = 0;
  size_t mask_ = 0;
};

template <typename T, typename Allocator>
ColumnView<T> view_of(const std::vector<T, Allocator>& column) {
  return {column.data(), column.size()};
}
template <typename T>
ColumnView<T> view_of(const Column<T>& column) {
  return column.view();
}

// The same values in the same order.
template <typename T>
bool operator==(const Cells<T>& column, const std::vector<T>& values) {
  return std::equal(column.begin(), column.end(), values.begin(), values.end());
}
template <typename T>
bool operator==(const Column<T>& column, const std::vector<T>& values) {
  return std::equal(column.begin(), column.end(), values.begin(), values.end());
}

// Cells for rows that are set next, with anything in them; one cell for all where they do not differ from `value`.
template <typename T>
void make_cells(Cells<T>& column, size_t rows, bool, const T&) {
  column.resize(rows);
}
template <typename T>
void make_cells(Column<T>& column, size_t rows, bool differ, const T& value) {
  differ ? column.spread(rows) : column.assign(rows, value);
}

template <typename T, typename Allocator>
void set_cell(std::vector<T, Allocator>& column, size_t row, const T& value) {
  column[row] = value;
}
template <typename T>
void set_cell(Column<T>& column, size_t row, const T& value) {
  column.set(row, value);
}

}  // namespace firelane
