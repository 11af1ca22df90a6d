// Tables for other tools, without a copy: the Arrow C data interface.
//
// An ArrowTable names columns that lie in memory already: the model's own vectors, or
// small ones that were built for it. export_stream() hands them to a consumer (pyarrow,
// polars, pandas, DuckDB) as one record batch; only bitmaps are made, on the first
// export. The consumer keeps the table, and through it the model, alive until it calls
// `release`, from any thread.
//
// The three structs below are the public ABI, to be found in the Arrow specification under
// "The Arrow C data interface" and "The Arrow C stream interface".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_NULLABLE 2

extern "C" {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

}  // extern "C"
#endif  // ARROW_C_DATA_INTERFACE

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

extern "C" {

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

}  // extern "C"
#endif  // ARROW_C_STREAM_INTERFACE

namespace firelane::exporter {

enum class ArrowType : uint8_t { kInt8, kUInt16, kInt32, kUInt32, kInt64, kUInt64, kFloat, kDouble, kBool, kText };

// A list of texts as Arrow wants them: one block of bytes and where each text begins in it.
// Bytes that are not UTF-8 become U+FFFD.
class ArrowTexts {
 public:
  void add(std::string_view text);
  size_t size() const { return offsets_.size() - 1; }
  std::string_view operator[](size_t i) const {
    return std::string_view(bytes_).substr(static_cast<size_t>(offsets_[i]),
                                           static_cast<size_t>(offsets_[i + 1] - offsets_[i]));
  }
  const int64_t* offsets() const { return offsets_.data(); }
  const char* bytes() const { return bytes_.data(); }

 private:
  std::vector<int64_t> offsets_{0};
  std::string bytes_;
};

struct ArrowColumn {
  std::string name;
  ArrowType type = ArrowType::kInt64;
  // Null for kText, which has texts instead; int8_t of 0 and 1 for kBool, packed on the first export.
  const void* values = nullptr;
  // Absent values become nulls: kNoRow and kNoSource (unsigned), kNoNumber (int64), anything
  // negative (bool, int8, int32, float), NaN (double), entry 0 of the texts (int32 with texts), "" (kText).
  bool nullable = false;
  // kText: the values. Integers: the dictionary that they point into. Else null.
  std::shared_ptr<const ArrowTexts> texts;
};

// null, or a value as a person would read it: dictionary entries are their text.
using ArrowCell = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string_view>;

class ArrowTable {
 public:
  // `owner` is what the columns' values lie in.
  ArrowTable(std::string name, size_t rows, std::vector<ArrowColumn> columns, std::shared_ptr<const void> owner);

  const std::string& name() const { return name_; }
  size_t rows() const { return rows_; }
  const std::vector<ArrowColumn>& columns() const { return columns_; }
  ArrowCell cell(size_t column, size_t row) const;

  // What Arrow has as one bit a row, the first row in the lowest bit.
  struct Bitmaps {
    std::vector<uint8_t> valid;  // empty when nothing is absent
    int64_t null_count = 0;
    std::vector<uint8_t> values;  // kBool only
  };
  // Built on first use; thread-safe.
  const Bitmaps& bitmaps(size_t column) const;

 private:
  std::string name_;
  size_t rows_;
  std::vector<ArrowColumn> columns_;
  std::shared_ptr<const void> owner_;
  mutable std::once_flag bitmaps_once_;
  mutable std::vector<Bitmaps> bitmaps_;
};

// Fills `out`, which the consumer releases. `table` lives as long as what was exported.
void export_schema(const std::shared_ptr<const ArrowTable>& table, ArrowSchema* out);
void export_stream(std::shared_ptr<const ArrowTable> table, ArrowArrayStream* out);

}  // namespace firelane::exporter
