// An SQLite database inside of a ByteSource, read only: what the readers of such formats stand on.
//
// The file is not trusted. Nothing in it is executed: only tables are asked, never views or virtual tables; values are
// bounded in size; and a damaged page ends the table it lies in, not the program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "import/byte_source.h"
#include "import/reader.h"
#include "import/sqlite/table_pages.h"

struct sqlite3;
struct sqlite3_stmt;

namespace firelane::importer {

// One row of a query: values by the position of their column.
class SqlRow {
 public:
  explicit SqlRow(sqlite3_stmt* statement) : statement_(statement) {}
  explicit SqlRow(const StoredValue* values) : values_(values) {}
  // kNoNumber for NULL and for what is no number.
  int64_t integer(int column) const { return values_ != nullptr ? values_[column].integer() : asked_integer(column); }
  double real(int column) const;            // NaN for the same
  std::string_view text(int column) const;  // "" for NULL and for what is no text; until the next row
  bool is_null(int column) const;

 private:
  int64_t asked_integer(int column) const;

  sqlite3_stmt* statement_ = nullptr;
  const StoredValue* values_ = nullptr;
};

class SqlDatabase {
 public:
  // Reads through `source`, or, where the content is compressed, from a copy in memory.
  static Result<std::unique_ptr<SqlDatabase>> open(std::shared_ptr<ByteSource> source, const ReadRequest& request);
  // Another connection to the same content, for another thread; `this` must outlive it. Null when there is none.
  std::unique_ptr<SqlDatabase> connect_again() const;
  ~SqlDatabase();
  SqlDatabase(const SqlDatabase&) = delete;
  SqlDatabase& operator=(const SqlDatabase&) = delete;

  bool has_table(std::string_view table) const;
  bool has_column(std::string_view table, std::string_view column) const;
  // Names of tables that begin with `prefix`, sorted.
  std::vector<std::string> tables_with_prefix(std::string_view prefix) const;

  // Visits the rows of a table in its own order, with the columns asked for; a column that the table does not have
  // reads as NULL. Of no table there are no rows. Counts tables and columns that are missing, and damage, in `losses`.
  void scan(std::string_view table, const std::vector<std::string_view>& columns, LossCounts& losses,
            const std::function<void(const SqlRow&)>& visit);

  // The first column of the first row of `table` where `key_column` is `key`; "" when there is none.
  std::string look_up(std::string_view table, std::string_view key_column, std::string_view key,
                      std::string_view value_column);

  // The column of the first row that the table has; kNoNumber if there is none.
  int64_t first_integer(std::string_view table, std::string_view column);

  uint64_t bytes() const { return bytes_; }

 private:
  SqlDatabase() = default;
  bool connect();
  void read_schema(LossCounts& losses);

  struct Column {
    std::string name;
    bool may_be_row_id = false;
    bool has_default = false;
  };
  struct Table {
    std::vector<Column> columns;
    uint32_t root = 0;  // its first page; 0: only SQLite can read it
  };
  const Column* find_column(std::string_view table, std::string_view column) const;
  // False when the table has to be asked of SQLite; the damage is counted.
  bool scan_pages(const Table& table, const std::vector<std::string_view>& columns, LossCounts& losses,
                  const std::function<void(const SqlRow&)>& visit);

  sqlite3* handle_ = nullptr;
  std::shared_ptr<const ByteSource> source_;
  std::unique_ptr<TablePages> pages_;  // null: SQLite reads all tables
  std::string vfs_name_;
  bool owns_vfs_ = false;
  uint64_t bytes_ = 0;
  std::unordered_map<std::string, Table> tables_;  // by name
};

}  // namespace firelane::importer
