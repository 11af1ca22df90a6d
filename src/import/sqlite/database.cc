#include "import/sqlite/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "import/sqlite/source_vfs.h"
#include "import/whole.h"

namespace firelane::importer {

namespace {

constexpr int kMaxTextBytes = 64 << 20;  // of one text
constexpr int kCacheKib = 1024;          // tables are read from end to end: more is of no use
constexpr size_t kMaxTables = 4096;

std::string identifier(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

struct StatementCloser {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, StatementCloser>;

Statement prepare(sqlite3* handle, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(handle, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) return nullptr;
  return Statement(statement);
}

// Compressed content cannot be read here and there: a copy of it can.
Result<std::shared_ptr<ByteSource>> in_memory(ByteSource& source, const ReadRequest& request) {
  FL_TRY(std::string bytes, read_whole_content(source, request));
  return std::shared_ptr<ByteSource>(open_memory(std::move(bytes)));
}

}  // namespace

// The value itself, and then its type and number: half the work of asking the statement for each. The connection is
// opened without mutexes, so that its values may be used like this.
int64_t SqlRow::asked_integer(int column) const {
  sqlite3_value* const value = sqlite3_column_value(statement_, column);
  const int type = sqlite3_value_type(value);
  if (type == SQLITE_INTEGER) return sqlite3_value_int64(value);
  if (type != SQLITE_FLOAT) return kNoNumber;
  const double real = sqlite3_value_double(value);
  return std::fabs(real) < 9.2e18 ? static_cast<int64_t>(real) : kNoNumber;
}

double SqlRow::real(int column) const {
  if (values_ != nullptr) return values_[column].real();
  const int type = sqlite3_column_type(statement_, column);
  const bool is_number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
  return is_number ? sqlite3_column_double(statement_, column) : std::numeric_limits<double>::quiet_NaN();
}

std::string_view SqlRow::text(int column) const {
  if (values_ != nullptr) return values_[column].text();
  sqlite3_value* const value = sqlite3_column_value(statement_, column);
  if (sqlite3_value_type(value) != SQLITE_TEXT) return {};
  const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return text == nullptr ? std::string_view{} : std::string_view(text, static_cast<size_t>(sqlite3_value_bytes(value)));
}

bool SqlRow::is_null(int column) const {
  return values_ != nullptr ? values_[column].is_null() : sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

Result<std::unique_ptr<SqlDatabase>> SqlDatabase::open(std::shared_ptr<ByteSource> source, const ReadRequest& request) {
  std::unique_ptr<SqlDatabase> database(new SqlDatabase());
  if (request.is_compressed) {
    FL_TRY(source, in_memory(*source, request));
  }
  database->bytes_ = source->total_bytes();
  database->source_ = source;
  database->pages_ = TablePages::open(source);
  database->vfs_name_ = register_source(std::move(source), database->bytes_);
  database->owns_vfs_ = true;
  if (!database->connect()) return Error{request.name + ": not a readable SQLite database"};
  LossCounts losses;
  database->read_schema(losses);
  if (database->tables_.empty()) {
    return Error{request.name +
                 ": an SQLite database without tables, or a damaged one: " + sqlite3_errmsg(database->handle_)};
  }
  return database;
}

bool SqlDatabase::connect() {
  if (sqlite3_open_v2("trace", &handle_, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, vfs_name_.c_str()) != SQLITE_OK)
    return false;
  sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, kMaxTextBytes);
  sqlite3_limit(handle_, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  const std::string settings =
      "PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-" + std::to_string(kCacheKib) + ";";
  sqlite3_exec(handle_, settings.c_str(), nullptr, nullptr, nullptr);
  return true;
}

std::unique_ptr<SqlDatabase> SqlDatabase::connect_again() const {
  if (sqlite3_threadsafe() == 0) return nullptr;
  std::unique_ptr<SqlDatabase> other(new SqlDatabase());
  other->vfs_name_ = vfs_name_;
  other->bytes_ = bytes_;
  other->tables_ = tables_;
  other->source_ = source_;
  other->pages_ = TablePages::open(source_);
  return other->connect() ? std::move(other) : nullptr;
}

SqlDatabase::~SqlDatabase() {
  sqlite3_close(handle_);
  if (owns_vfs_) unregister_source(vfs_name_);
}

void SqlDatabase::read_schema(LossCounts&) {
  std::vector<std::pair<std::string, int64_t>> names;
  const Statement list =
      prepare(handle_,
              "SELECT name, rootpage FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' "
              "ORDER BY name");
  while (list && names.size() < kMaxTables && sqlite3_step(list.get()) == SQLITE_ROW) {
    const SqlRow row(list.get());
    names.emplace_back(row.text(0), row.integer(1));
  }
  for (const auto& [name, root] : names) {
    Table& out = tables_[name];
    bool is_plain = root > 0 && root <= UINT32_MAX;
    // cid, name, type, notnull, dflt_value, pk, hidden
    const Statement columns = prepare(handle_, "PRAGMA table_xinfo(" + identifier(name) + ")");
    while (columns && sqlite3_step(columns.get()) == SQLITE_ROW) {
      const SqlRow row(columns.get());
      if (row.integer(6) != 0) is_plain = false;  // generated: stored or not, it is not counted alike
      const std::string_view type = row.text(2);
      const bool is_integer = type.size() == 7 && sqlite3_strnicmp(type.data(), "INTEGER", 7) == 0;
      out.columns.push_back({.name = std::string(row.text(1)),
                             .may_be_row_id = is_integer && row.integer(5) > 0,
                             .has_default = !row.is_null(4)});
    }
    if (is_plain && pages_ && pages_->is_table(static_cast<uint32_t>(root))) out.root = static_cast<uint32_t>(root);
  }
}

bool SqlDatabase::has_table(std::string_view table) const { return tables_.contains(std::string(table)); }

const SqlDatabase::Column* SqlDatabase::find_column(std::string_view table, std::string_view column) const {
  const auto found = tables_.find(std::string(table));
  if (found == tables_.end()) return nullptr;
  for (const Column& each : found->second.columns) {
    if (each.name == column) return &each;
  }
  return nullptr;
}

bool SqlDatabase::has_column(std::string_view table, std::string_view column) const {
  return find_column(table, column) != nullptr;
}

std::vector<std::string> SqlDatabase::tables_with_prefix(std::string_view prefix) const {
  std::vector<std::string> out;
  for (const auto& [name, table] : tables_) {
    if (name.starts_with(prefix)) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void SqlDatabase::scan(std::string_view table, const std::vector<std::string_view>& columns, LossCounts& losses,
                       const std::function<void(const SqlRow&)>& visit) {
  const auto found = tables_.find(std::string(table));
  if (found == tables_.end()) {
    ++losses[Stat::kTableMissing];
    return;
  }
  std::string sql;
  for (const std::string_view column : columns) {
    const bool present = has_column(table, column);
    if (!present) ++losses[Stat::kColumnMissing];
    sql += (sql.empty() ? "SELECT " : ", ") + (present ? identifier(column) : std::string("NULL"));
  }
  if (scan_pages(found->second, columns, losses, visit)) return;
  const Statement statement = prepare(handle_, sql + " FROM " + identifier(table));
  if (!statement) {
    ++losses[Stat::kDatabaseDamaged];
    return;
  }
  const SqlRow row(statement.get());
  int state = SQLITE_ROW;
  while ((state = sqlite3_step(statement.get())) == SQLITE_ROW) visit(row);
  if (state != SQLITE_DONE) ++losses[Stat::kDatabaseDamaged];
}

bool SqlDatabase::scan_pages(const Table& table, const std::vector<std::string_view>& columns, LossCounts& losses,
                             const std::function<void(const SqlRow&)>& visit) {
  if (table.root == 0 || !pages_) return false;
  std::vector<TablePages::Wanted> wanted;
  for (const std::string_view name : columns) {
    TablePages::Wanted each;
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const Column& column = table.columns[i];
      if (column.name != name) continue;
      if (column.has_default) return false;  // which rows from before the column have
      each = {.column = static_cast<int>(i), .may_be_row_id = column.may_be_row_id};
    }
    // A column that is asked for twice has one place.
    for (const TablePages::Wanted& other : wanted) {
      if (each.column >= 0 && other.column == each.column) return false;
    }
    wanted.push_back(each);
  }
  if (!pages_->scan(table.root, wanted, [&](const StoredValue* values) { visit(SqlRow(values)); }))
    ++losses[Stat::kDatabaseDamaged];
  return true;
}

int64_t SqlDatabase::first_integer(std::string_view table, std::string_view column) {
  if (!has_column(table, column)) return kNoNumber;
  const Statement statement =
      prepare(handle_, "SELECT " + identifier(column) + " FROM " + identifier(table) + " LIMIT 1");
  if (!statement || sqlite3_step(statement.get()) != SQLITE_ROW) return kNoNumber;
  return SqlRow(statement.get()).integer(0);
}

std::string SqlDatabase::look_up(std::string_view table, std::string_view key_column, std::string_view key,
                                 std::string_view value_column) {
  if (!has_column(table, key_column) || !has_column(table, value_column)) return "";
  const Statement statement =
      prepare(handle_, "SELECT CAST(" + identifier(value_column) + " AS TEXT) FROM " + identifier(table) + " WHERE " +
                           identifier(key_column) + " = ?1 LIMIT 1");
  if (!statement) return "";
  sqlite3_bind_text(statement.get(), 1, key.data(), static_cast<int>(key.size()), SQLITE_TRANSIENT);
  return sqlite3_step(statement.get()) == SQLITE_ROW ? std::string(SqlRow(statement.get()).text(0)) : "";
}

}  // namespace firelane::importer
