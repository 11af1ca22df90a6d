// Rows from the pages of a database are those that SQLite itself gives.
#include "import/sqlite/table_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "import/samples_for_tests.h"
#include "import/sqlite/database.h"
#include "import/sqlite/testing.h"

namespace firelane::importer {
namespace {

// All rows of a table as text, asked of SQLite: TEXT and numbers as they are, NULL as "-".
std::vector<std::string> asked(const std::string& file, const std::string& query) {
  std::string bytes = file;
  sqlite3* handle = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &handle), SQLITE_OK);
  EXPECT_EQ(sqlite3_deserialize(handle, "main", reinterpret_cast<unsigned char*>(bytes.data()),
                                static_cast<sqlite3_int64>(bytes.size()), static_cast<sqlite3_int64>(bytes.size()),
                                SQLITE_DESERIALIZE_READONLY),
            SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(handle, query.c_str(), -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
  std::vector<std::string> rows;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    std::string row;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      switch (sqlite3_column_type(statement, i)) {
        case SQLITE_NULL: row += "-"; break;
        case SQLITE_INTEGER: row += std::to_string(sqlite3_column_int64(statement, i)); break;
        case SQLITE_FLOAT: row += std::to_string(sqlite3_column_double(statement, i)); break;
        case SQLITE_TEXT: row += reinterpret_cast<const char*>(sqlite3_column_text(statement, i)); break;
        default: row += "blob";
      }
      row += "|";
    }
    rows.push_back(row);
  }
  sqlite3_finalize(statement);
  sqlite3_close(handle);
  return rows;
}

std::string as_text(const StoredValue& value) {
  if (value.is_null()) return "-";
  if (value.type == 7) return std::to_string(value.real());
  if (value.integer() != kNoNumber) return std::to_string(value.integer());
  return value.type % 2 == 1 ? std::string(value.text()) : "blob";
}

std::vector<std::string> from_pages(const std::string& file, uint32_t root,
                                    const std::vector<TablePages::Wanted>& wanted, bool* ok = nullptr) {
  std::vector<std::string> rows;
  const auto pages = TablePages::open(std::shared_ptr<ByteSource>(open_memory(file)));
  EXPECT_NE(pages, nullptr);
  if (pages == nullptr) return rows;
  const bool whole = pages->scan(root, wanted, [&](const StoredValue* values) {
    std::string row;
    for (size_t i = 0; i < wanted.size(); ++i) row += as_text(values[i]) + "|";
    rows.push_back(row);
  });
  if (ok != nullptr) *ok = whole;
  return rows;
}

uint32_t root_of(const std::string& file, const std::string& table) {
  return static_cast<uint32_t>(
      std::stoul(asked(file, "SELECT rootpage FROM sqlite_master WHERE name = '" + table + "'").at(0)));
}

// Numbers of every width, texts that need pages of their own, a key that is the row id, columns that came later.
std::string mixed_file() {
  return make_database(
      "PRAGMA page_size = 1024;"
      "CREATE TABLE t(a INT, b TEXT, id INTEGER PRIMARY KEY, c REAL);"
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) "
      "INSERT INTO t SELECT CASE i % 9 WHEN 0 THEN 0 WHEN 1 THEN 1 WHEN 2 THEN -i WHEN 3 THEN i * 300 WHEN 4 THEN "
      "i * -70000 WHEN 5 THEN i * 3000000000 WHEN 6 THEN -9223372036854775808 + i WHEN 7 THEN NULL ELSE 8388607 + i "
      "END, "
      "CASE WHEN i % 500 = 3 THEN hex(zeroblob(20000 + i)) WHEN i % 7 = 0 THEN NULL ELSE 'name ' || i END, i * 3 - 50, "
      "i * 0.25 FROM n;"
      "ALTER TABLE t ADD COLUMN late TEXT; INSERT INTO t(a, late) VALUES(5, 'new');");
}

const std::vector<TablePages::Wanted> kAllColumns = {{.column = 0}, {.column = 1}, {.column = 2, .may_be_row_id = true},
                                                     {.column = 3}, {.column = 4}, {.column = -1}};

TEST(TablePages, rows_are_those_that_sqlite_gives) {
  const std::string file = mixed_file();
  std::vector<std::string> rows = from_pages(file, root_of(file, "t"), kAllColumns);
  const std::vector<std::string> expected = asked(file, "SELECT a, b, id, c, late, NULL FROM t");
  ASSERT_EQ(rows.size(), expected.size());
  // A float that is a whole number is stored as one.
  const std::vector<std::string> whole = asked(file, "SELECT a, b, id, CAST(c AS INT), late, NULL FROM t");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != whole[i]) EXPECT_EQ(rows[i], expected[i]) << i;
  }
}

TEST(TablePages, of_a_cut_or_damaged_file_no_page_is_read_beyond_its_end) {
  const std::string file = mixed_file();
  const uint32_t root = root_of(file, "t");
  bool ok = true;
  for (size_t size = 1024; size < file.size(); size += file.size() / 12)
    (void)from_pages(file.substr(0, size), root, kAllColumns);
  (void)from_pages(file.substr(0, file.size() / 2), root, kAllColumns, &ok);
  EXPECT_FALSE(ok);
  for (size_t at = 100; at < file.size(); at += 9973) {
    std::string bytes = file;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x5A);
    (void)from_pages(bytes, root, kAllColumns);
  }
}

TEST(TablePages, pages_that_form_a_circle_end) {
  std::string file = mixed_file();
  const uint32_t root = root_of(file, "t");
  char* const page = file.data() + size_t{root - 1} * 1024;
  ASSERT_EQ(page[0], 5) << "the root has pages below it";
  for (int byte = 0; byte < 4; ++byte) page[8 + byte] = static_cast<char>(root >> (24 - 8 * byte));
  bool ok = true;
  (void)from_pages(file, root, kAllColumns, &ok);
  EXPECT_FALSE(ok);
}

// A text of hundreds of megabytes among the names was the end of them.
TEST(TablePages, a_row_that_is_too_long_is_left_out) {
  std::string file =
      make_database("CREATE TABLE t(a TEXT); INSERT INTO t VALUES('first'), (hex(zeroblob(1100000))), ('last');");
  const uint32_t root = root_of(file, "t");
  const size_t at = file.find("\x81\x86\xA3\x45");  // the length of the row, 2,200,005 bytes
  ASSERT_NE(at, std::string::npos);
  file.replace(at, 4, "\xFF\xFF\xFF\x7F");
  bool ok = true;
  EXPECT_EQ(from_pages(file, root, {{.column = 0}}, &ok), (std::vector<std::string>{"first|", "last|"}));
  EXPECT_FALSE(ok);
}

// Each row of a page could claim 64 MB, and read a circle of pages for them.
TEST(TablePages, long_texts_whose_pages_form_a_circle_end) {
  std::string file = make_database(
      "PRAGMA page_size = 512; CREATE TABLE t(a TEXT);"
      "INSERT INTO t VALUES(hex(zeroblob(3000)));");
  const uint32_t root = root_of(file, "t");
  char* const page = file.data() + size_t{root - 1} * 512;
  ASSERT_EQ(page[0], 13) << "the root has the row";
  const auto at = static_cast<size_t>(static_cast<uint8_t>(page[8]) << 8 | static_cast<uint8_t>(page[9]));
  // Of a row of 6003 bytes, and of one longer by 20 pages of 508 bytes, as much is stored here; both lengths have two
  // bytes.
  const uint64_t size = 6003 + uint64_t{20} * 508;
  page[at] = static_cast<char>(0x80 | (size >> 7));
  page[at + 1] = static_cast<char>(size & 0x7F);
  for (size_t other = 0; other < file.size(); other += 512) {
    if (other == 0 || other / 512 + 1 == root) continue;
    for (int byte = 0; byte < 4; ++byte) file[other + static_cast<size_t>(byte)] = byte == 3 ? 3 : 0;
  }
  bool ok = true;
  EXPECT_TRUE(from_pages(file, root, {{.column = 0}}, &ok).empty());
  EXPECT_FALSE(ok);
}

TEST(TablePages, what_is_not_plain_is_left_to_sqlite) {
  EXPECT_EQ(TablePages::open(std::shared_ptr<ByteSource>(
                open_memory(make_database("PRAGMA encoding = 'UTF-16'; CREATE TABLE t(a TEXT);")))),
            nullptr);
  const std::string file = make_database(
      "CREATE TABLE w(a INT PRIMARY KEY, b INT) WITHOUT ROWID; INSERT INTO w VALUES(1, 2);"
      "CREATE TABLE g(a INT, b INT AS (a * 2) STORED, c INT); INSERT INTO g(a, c) VALUES(3, 4);"
      "CREATE TABLE d(a INT); INSERT INTO d VALUES(1); ALTER TABLE d ADD COLUMN b INT DEFAULT 7;");
  const ReadRequest request{.name = "test"};
  auto database = SqlDatabase::open(std::shared_ptr<ByteSource>(open_memory(file)), request);
  ASSERT_TRUE(database.ok());
  const auto rows = [&](std::string_view table, const std::vector<std::string_view>& columns) {
    std::string out;
    LossCounts losses;
    database.value()->scan(table, columns, losses, [&](const SqlRow& row) {
      for (size_t i = 0; i < columns.size(); ++i) out += std::to_string(row.integer(static_cast<int>(i))) + " ";
    });
    return out;
  };
  EXPECT_EQ(rows("w", {"a", "b"}), "1 2 ");
  EXPECT_EQ(rows("g", {"a", "c"}), "3 4 ");
  EXPECT_EQ(rows("d", {"a", "b"}), "1 7 ");
}

// Every value of every table of a real export.
TEST(TablePages, the_nsight_sample_has_the_values_that_sqlite_gives) {
  FL_NEED_SAMPLE(path, "nsys_h100_2gpu.sqlite");
  auto source = open_file(path);
  ASSERT_TRUE(source.ok());
  std::string file(static_cast<size_t>(source.value()->total_bytes()), '\0');
  ASSERT_EQ(source.value()->read(file.data(), file.size()), file.size());
  for (const std::string& named : asked(file, "SELECT name FROM sqlite_master WHERE type = 'table'")) {
    const std::string table = named.substr(0, named.size() - 1);
    std::vector<TablePages::Wanted> wanted;
    for (const std::string& column : asked(file, "SELECT type, pk FROM pragma_table_info('" + table + "')"))
      wanted.push_back({.column = static_cast<int>(wanted.size()), .may_be_row_id = column == "INTEGER|1|"});
    const std::vector<std::string> rows = from_pages(file, root_of(file, table), wanted);
    EXPECT_EQ(rows, asked(file, "SELECT * FROM \"" + table + "\"")) << table;
  }
}

}  // namespace
}  // namespace firelane::importer
