// The model as an SQLite database: every table of model/catalog.h as a virtual table, and a
// few views. Read-only; nothing is copied, SQLite asks for the cells it needs.
//
//   FL_TRY(auto database, Database::open(model));
//   FL_TRY_VOID(database->run("select name, duration_ns from ops", visitor));
//
// Not thread-safe. The model must outlive the database.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/catalog.h"
#include "model/model.h"

struct sqlite3;

namespace firelane::sql {

// Takes the rows of the statements that give rows.
class RowVisitor {
 public:
  virtual ~RowVisitor() = default;
  virtual void columns(const std::vector<std::string>& names) = 0;  // a new result begins; no two alike
  virtual void row(std::span<const Cell> cells) = 0;                // texts are valid during the call
  virtual void end() {}                                             // no more rows
};

struct QueryLimits {
  std::chrono::nanoseconds time{0};         // 0 = no limit
  const std::atomic<bool>* stop = nullptr;  // the query ends with an error soon after it becomes true
};

class Database {
 public:
  static Result<std::unique_ptr<Database>> open(const Model& model);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs all statements of `sql`, in order, until one fails.
  Result<void> run(std::string_view sql, RowVisitor& visitor, const QueryLimits& limits = {});

  // Whether `sql` ends a statement: a semicolon outside of texts and comments.
  static bool is_complete(const std::string& sql);

 private:
  explicit Database(sqlite3* handle) : handle_(handle) {}
  sqlite3* handle_;
};

// A view: a named query that saves a join.
struct ModelView {
  std::string_view name;
  std::string_view meaning;
  std::string_view query;
};
std::span<const ModelView> model_views();

// The table or view as text: its columns, types and meanings. Empty for an unknown name.
std::string describe_table(std::string_view name);

}  // namespace firelane::sql
