#include "sql/database.h"

#include <sqlite3.h>

#include <cstring>
#include <map>

#include "base/check.h"
#include "sql/virtual_table.h"

namespace firelane::sql {

namespace {

constexpr int kStepsBetweenChecks = 10'000;  // of SQLite's virtual machine: well under a millisecond

struct Watch {
  const QueryLimits& limits;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  bool out_of_time() const { return limits.time.count() > 0 && std::chrono::steady_clock::now() - start > limits.time; }
  bool stopped() const { return limits.stop != nullptr && limits.stop->load(std::memory_order_relaxed); }
};

int check_limits(void* watch) {
  const auto* w = static_cast<const Watch*>(watch);
  return w->stopped() || w->out_of_time() ? 1 : 0;
}

// Only reading is allowed: the trace cannot be changed, and no other file is to be touched.
int authorize(void*, int action, const char* first, const char*, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
    case SQLITE_FUNCTION: return SQLITE_OK;
    case SQLITE_PRAGMA:
      return std::strcmp(first, "table_info") == 0 || std::strcmp(first, "table_list") == 0 ? SQLITE_OK : SQLITE_DENY;
    default: return SQLITE_DENY;
  }
}

Error query_error(sqlite3* connection, int code, const Watch& watch) {
  if (code == SQLITE_INTERRUPT) {
    return Error{watch.stopped() ? "sql: interrupted" : "sql: the query took longer than its time limit"};
  }
  std::string message = sqlite3_errmsg(connection);
  if (code == SQLITE_AUTH || message.ends_with("may not be modified")) {
    return Error{"sql: a trace can only be read; use select (or pragma table_info)"};
  }
  if (message.starts_with("no such table")) message += "; .tables (or docs/sql.md) lists them";
  return Error{"sql: " + message};
}

Cell cell_of(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL: return {};
    case SQLITE_INTEGER: return Cell::of(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT: return Cell::of_real(sqlite3_column_double(statement, column));
    default: {
      const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, column));
      return Cell::of_text({text, static_cast<size_t>(sqlite3_column_bytes(statement, column))});
    }
  }
}

int run_statement(sqlite3_stmt* statement, RowVisitor& visitor) {
  const int columns = sqlite3_column_count(statement);
  std::vector<std::string> names;
  std::map<std::string, int> seen;  // "select a.id, b.id": every column keeps a name of its own
  for (int i = 0; i < columns; ++i) {
    const std::string name = sqlite3_column_name(statement, i);
    const int times = ++seen[name];
    names.push_back(times == 1 ? name : name + "_" + std::to_string(times));
  }
  visitor.columns(names);
  std::vector<Cell> cells(static_cast<size_t>(columns));
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    for (int i = 0; i < columns; ++i) cells[static_cast<size_t>(i)] = cell_of(statement, i);
    visitor.row(cells);
  }
  if (code == SQLITE_DONE) visitor.end();
  return code;
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const Model& model) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  std::unique_ptr<Database> database(new Database(handle));
  if (code != SQLITE_OK) return Error{"sql: cannot start SQLite"};
  for (const CatalogTable& table : catalog()) {
    FL_CHECK(create_virtual_table(handle, model, table) == SQLITE_OK,
             "every table of the model has a valid declaration");
  }
  for (const ModelView& view : model_views()) {
    const std::string sql = "CREATE VIEW " + std::string(view.name) + " AS " + std::string(view.query);
    FL_CHECK(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK, "views are valid SQL");
  }
  sqlite3_set_authorizer(handle, authorize, nullptr);
  return database;
}

Database::~Database() { sqlite3_close_v2(handle_); }

Result<void> Database::run(std::string_view sql, RowVisitor& visitor, const QueryLimits& limits) {
  Watch watch{limits};
  sqlite3_progress_handler(handle_, kStepsBetweenChecks, check_limits, &watch);
  const std::string text(sql);
  const char* rest = text.c_str();
  int code = SQLITE_OK;
  while (*rest != '\0') {
    sqlite3_stmt* statement = nullptr;
    code = sqlite3_prepare_v2(handle_, rest, -1, &statement, &rest);
    if (code != SQLITE_OK) break;
    if (statement == nullptr) continue;  // white space or a comment
    code = run_statement(statement, visitor);
    sqlite3_finalize(statement);
    if (code != SQLITE_DONE) break;
    code = SQLITE_OK;
  }
  Result<void> result;
  if (code != SQLITE_OK) result = query_error(handle_, code, watch);
  sqlite3_progress_handler(handle_, 0, nullptr, nullptr);
  return result;
}

bool Database::is_complete(const std::string& sql) { return sqlite3_complete(sql.c_str()) != 0; }

}  // namespace firelane::sql
