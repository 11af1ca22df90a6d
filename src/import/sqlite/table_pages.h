// The rows of a table straight from the pages of a database file, in the order of their row ids: a quarter of the time
// that asking SQLite for each value takes. SQLite itself says what tables there are, and reads those that are not
// plain (WITHOUT ROWID, texts that are not UTF-8, generated columns, defaults).
//
// The format of the file is SQLite's own documentation, "Database File Format". The file is not trusted: every place
// and length is checked against its page, and pages that form a circle end the table.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "import/byte_source.h"
#include "model/values.h"

namespace firelane::importer {

// One value of a record: where its bytes lie, and what they are.
struct StoredValue {
  const char* bytes = nullptr;
  uint64_t type = 0;   // as it is stored: 0 NULL, 1 to 6 numbers, 7 a float, 8 and 9 the numbers 0 and 1, then texts
  int64_t row_id = 0;  // of a column that is another name of it: type kRowId

  static constexpr uint64_t kRowId = UINT64_MAX;
  int64_t integer() const;  // kNoNumber for NULL, and for what is no number
  double real() const;      // NaN for the same
  std::string_view text() const;
  bool is_null() const { return type == 0; }
};

class TablePages {
 public:
  // What the file's first page says; null for files whose pages are not read here.
  static std::unique_ptr<TablePages> open(std::shared_ptr<const ByteSource> source);

  struct Wanted {
    int column = -1;             // place in the record; -1: reads as NULL
    bool may_be_row_id = false;  // INTEGER PRIMARY KEY: stored as NULL where it is the row id
  };
  using Visit = std::function<void(const StoredValue* values)>;
  // Visits all rows below a root page with the values wanted. False when a page is damaged, where it ends, or when a
  // row is too long to be one of a trace, which is left out. Thread-safe are only different objects.
  bool scan(uint32_t root, const std::vector<Wanted>& wanted, const Visit& visit);
  // Whether the root page is that of a table with row ids.
  bool is_table(uint32_t root);

 private:
  explicit TablePages(std::shared_ptr<const ByteSource> source) : source_(std::move(source)) {}

  // The bytes of a page until the next call; null if there is none.
  const char* page(uint32_t number);
  bool read_leaf(const char* page, uint32_t header, const Visit& visit);
  bool read_cell(const char* page, const char* at, const Visit& visit);
  const char* whole_payload(const char* local, uint64_t stored, uint64_t size, uint32_t overflow);
  bool read_record(const char* record, uint64_t size, int64_t row_id);

  std::shared_ptr<const ByteSource> source_;
  uint32_t page_bytes_ = 0;
  uint32_t usable_bytes_ = 0;
  uint64_t page_count_ = 0;
  bool is_whole_ = true;
  uint64_t visited_ = 0;      // pages of a table, each of which it has once
  std::vector<char> window_;  // pages that lie together
  uint64_t window_at_ = 0;    // offset of its first byte
  size_t window_bytes_ = 0;
  std::string long_payload_;
  const std::vector<Wanted>* wanted_ = nullptr;
  std::vector<int> place_of_column_;  // in values_, by column of the record; -1: not wanted
  std::vector<StoredValue> values_;
};

}  // namespace firelane::importer
