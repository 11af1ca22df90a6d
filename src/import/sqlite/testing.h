// For tests: the bytes of a database that some SQL makes.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

namespace firelane::importer {

inline std::string make_database(const std::string& sql) {
  sqlite3* handle = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &handle), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << (error != nullptr ? error : "");
  sqlite3_free(error);
  sqlite3_int64 size = 0;
  unsigned char* const bytes = sqlite3_serialize(handle, "main", &size, 0);
  std::string out(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(handle);
  return out;
}

// The first number of a query's first row, asked of the file itself.
inline int64_t ask_file(const std::string& path, const std::string& query) {
  sqlite3* handle = nullptr;
  const std::string uri = "file:" + path + "?mode=ro&immutable=1";
  EXPECT_EQ(sqlite3_open_v2(uri.c_str(), &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(handle, query.c_str(), -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
  EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW) << query;
  const int64_t answer = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(handle);
  return answer;
}

}  // namespace firelane::importer
