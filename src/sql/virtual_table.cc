// How a query finds its rows.
//
// xBestIndex tells SQLite which conditions we can use, xFilter uses them:
//   id = x                 one row
//   lane = x               the rows of the lane, which are contiguous
//   time >= x, < x, ...    a binary search, in tables sorted by time and within a lane
//   column = x             integers and interned texts: the first such search of a column
//                          looks at all rows (comparing integers); the second one, which
//                          means a join, builds an index of the column and keeps it
// SQLite checks every condition again, so each step may keep too many rows but none too few.
#include "sql/virtual_table.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace firelane::sql {

namespace {

struct Table : sqlite3_vtab {
  const Model* model = nullptr;
  const CatalogTable* table = nullptr;
  std::vector<uint32_t> searches;       // per column: how often it was searched for a value
  std::vector<std::vector<Row>> index;  // per column: rows sorted by key; empty = not built
};

struct KeyFilter {
  size_t column = 0;
  int64_t key = 0;
};

struct Cursor : sqlite3_vtab_cursor {
  Row at = 0;  // position in rows, or the row itself
  Row end = 0;
  const std::vector<Row>* rows = nullptr;  // the part of an index that is read; null = rows at..end
  std::vector<KeyFilter> filters;

  Row row() const { return rows != nullptr ? (*rows)[at] : at; }
};

struct Registration {
  const Model* model;
  const CatalogTable* table;
};

bool is_searchable(const CatalogColumn& column) { return column.has_ids() || column.kind == Cell::Kind::kInteger; }

// The value of a searchable column as an integer; nothing when it is null or a text.
std::optional<int64_t> key_of(const Table& t, size_t column, Row row) {
  const CatalogColumn& c = t.table->columns[column];
  if (c.has_ids()) return static_cast<int64_t>(c.id(*t.model, row));
  const Cell cell = c.cell(*t.model, row);
  if (cell.kind != Cell::Kind::kInteger) return std::nullopt;
  return cell.integer;
}

const std::vector<Row>& index_of(Table& t, size_t column) {
  std::vector<Row>& index = t.index[column];
  if (!index.empty()) return index;
  const auto size = static_cast<Row>(t.table->size(*t.model));
  for (Row row = 0; row < size; ++row) {
    if (key_of(t, column, row)) index.push_back(row);
  }
  std::stable_sort(index.begin(), index.end(),
                   [&](Row a, Row b) { return *key_of(t, column, a) < *key_of(t, column, b); });
  return index;
}

std::string declaration(const CatalogTable& table) {
  std::string sql = "CREATE TABLE x(";
  for (const CatalogColumn& column : table.columns) {
    if (sql.back() != '(') sql += ", ";
    sql += '"' + std::string(column.name) + "\" ";
    sql += column.kind == Cell::Kind::kInteger ? "INTEGER" : column.kind == Cell::Kind::kReal ? "REAL" : "TEXT";
  }
  return sql + ")";
}

int connect(sqlite3* connection, void* registration, int, const char* const*, sqlite3_vtab** out, char**) {
  const auto* r = static_cast<Registration*>(registration);
  const int code = sqlite3_declare_vtab(connection, declaration(*r->table).c_str());
  if (code != SQLITE_OK) return code;
  auto* table = new (std::nothrow) Table();
  if (table == nullptr) return SQLITE_NOMEM;
  table->model = r->model;
  table->table = r->table;
  table->searches.resize(r->table->columns.size());
  table->index.resize(r->table->columns.size());
  *out = table;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<Table*>(table);
  return SQLITE_OK;
}

// The plan travels to xFilter as text: for each value, an operator and the column number.
constexpr char kEqual = '=';
constexpr char kAtLeast = '>';
constexpr char kAtMost = '<';

char operator_of(const CatalogColumn& column, unsigned char op) {
  const bool ordered = is_time(column.use);
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ: return is_searchable(column) ? kEqual : '\0';
    case SQLITE_INDEX_CONSTRAINT_GT:
    case SQLITE_INDEX_CONSTRAINT_GE: return ordered ? kAtLeast : '\0';
    case SQLITE_INDEX_CONSTRAINT_LT:
    case SQLITE_INDEX_CONSTRAINT_LE: return ordered ? kAtMost : '\0';
    default: return '\0';
  }
}

int best_index(sqlite3_vtab* vtab, sqlite3_index_info* info) {
  const auto& t = *static_cast<Table*>(vtab);
  const auto size = static_cast<double>(t.table->size(*t.model));
  double rows = size;
  std::string plan;
  int arguments = 0;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& constraint = info->aConstraint[i];
    if (constraint.usable == 0 || constraint.iColumn < 0) continue;
    const auto number = static_cast<size_t>(constraint.iColumn);
    const CatalogColumn& column = t.table->columns[number];
    const char op = operator_of(column, constraint.op);
    if (op == '\0') continue;
    if (column.has_ids() && std::string_view(sqlite3_vtab_collation(info, i)) != "BINARY") continue;
    info->aConstraintUsage[i].argvIndex = ++arguments;
    plan += op + std::to_string(number) + ' ';
    if (op != kEqual) {
      rows = std::min(rows, rows / 2 + 1);
    } else if (column.use == Use::kId) {
      rows = 1;
      info->idxFlags |= SQLITE_INDEX_SCAN_UNIQUE;
    } else {
      rows = std::min(rows, std::sqrt(rows) + 1);
    }
  }
  info->estimatedRows = static_cast<sqlite3_int64>(rows);
  info->estimatedCost = rows + 1;
  if (plan.empty()) return SQLITE_OK;
  info->idxStr = sqlite3_mprintf("%s", plan.c_str());
  info->needToFreeIdxStr = 1;
  return info->idxStr == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int open_cursor(sqlite3_vtab*, sqlite3_vtab_cursor** out) {
  *out = new (std::nothrow) Cursor();
  return *out == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

const Table& table_of(const Cursor& cursor) { return *static_cast<const Table*>(cursor.pVtab); }

void skip_unwanted(Cursor& cursor) {
  const Table& t = table_of(cursor);
  const auto wanted = [&](Row row) {
    return std::all_of(cursor.filters.begin(), cursor.filters.end(),
                       [&](const KeyFilter& f) { return key_of(t, f.column, row) == f.key; });
  };
  while (cursor.at < cursor.end && !wanted(cursor.row())) ++cursor.at;
}

// The value as the key of a column. kNone: no row can match; kUnknown: SQLite must decide.
struct Key {
  enum class State { kKnown, kNone, kUnknown } state = State::kUnknown;
  int64_t key = 0;
};

Key key_for(const Table& t, const CatalogColumn& column, sqlite3_value* value) {
  const int type = sqlite3_value_type(value);
  if (type == SQLITE_NULL) return {Key::State::kNone};
  if (!column.has_ids()) {
    if (type != SQLITE_INTEGER) return {Key::State::kUnknown};
    return {Key::State::kKnown, sqlite3_value_int64(value)};
  }
  if (type != SQLITE_TEXT) return {Key::State::kUnknown};
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  const std::string_view view(text, static_cast<size_t>(sqlite3_value_bytes(value)));
  const StringId id = t.model->strings.find(view);
  // The empty text is shown as null, and null equals nothing.
  return id == kNoString ? Key{Key::State::kNone} : Key{Key::State::kKnown, static_cast<int64_t>(id)};
}

struct Bound {
  size_t column = 0;
  bool at_least = true;
  int64_t value = 0;
};

std::optional<int64_t> bound_of(sqlite3_value* value, bool at_least) {
  const int type = sqlite3_value_numeric_type(value);
  if (type == SQLITE_INTEGER) return sqlite3_value_int64(value);
  if (type != SQLITE_FLOAT) return std::nullopt;
  const double real = sqlite3_value_double(value);
  if (!(std::abs(real) < 9e18)) return std::nullopt;
  return static_cast<int64_t>(at_least ? std::floor(real) : std::ceil(real));
}

// Narrows at..end, which is sorted by the bound's column.
void apply_bound(const Table& t, Cursor& cursor, const Bound& bound) {
  const auto before = [&](Row row) {
    const int64_t value = t.table->columns[bound.column].cell(*t.model, row).integer;
    return bound.at_least ? value < bound.value : value <= bound.value;
  };
  Row low = cursor.at;
  Row high = cursor.end;
  while (low < high) {
    const Row middle = low + (high - low) / 2;
    if (before(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  (bound.at_least ? cursor.at : cursor.end) = low;
}

void use_index(Table& t, Cursor& cursor) {
  const KeyFilter filter = cursor.filters.front();
  const std::vector<Row>& index = index_of(t, filter.column);
  const auto key = [&](Row row) { return *key_of(t, filter.column, row); };
  const auto low =
      std::lower_bound(index.begin(), index.end(), filter.key, [&](Row r, int64_t k) { return key(r) < k; });
  const auto high = std::upper_bound(low, index.end(), filter.key, [&](int64_t k, Row r) { return k < key(r); });
  cursor.rows = &index;
  cursor.at = static_cast<Row>(low - index.begin());
  cursor.end = static_cast<Row>(high - index.begin());
  cursor.filters.erase(cursor.filters.begin());
}

int filter(sqlite3_vtab_cursor* vcursor, int, const char* plan, int argc, sqlite3_value** argv) {
  Cursor& cursor = *static_cast<Cursor*>(vcursor);
  Table& t = *static_cast<Table*>(cursor.pVtab);
  cursor.rows = nullptr;
  cursor.filters.clear();
  cursor.at = 0;
  cursor.end = static_cast<Row>(t.table->size(*t.model));

  bool one_lane = false;
  bool narrowed = false;
  std::vector<Bound> bounds;
  for (int i = 0; i < argc; ++i) {
    const char op = *plan++;
    char* next = nullptr;
    const size_t number = std::strtoul(plan, &next, 10);
    plan = next + 1;
    const CatalogColumn& column = t.table->columns[number];
    if (op != kEqual) {
      const auto value = bound_of(argv[i], op == kAtLeast);
      if (value) bounds.push_back({number, op == kAtLeast, *value});
      continue;
    }
    const Key key = key_for(t, column, argv[i]);
    if (key.state == Key::State::kUnknown) continue;
    std::pair<Row, Row> range{cursor.at, cursor.end};
    if (key.state == Key::State::kNone) {
      range = {0, 0};
    } else if (column.use == Use::kId) {
      const bool exists = key.key >= cursor.at && key.key < cursor.end;
      range = exists ? std::pair{static_cast<Row>(key.key), static_cast<Row>(key.key + 1)} : std::pair<Row, Row>{0, 0};
    } else if (column.use == Use::kLane) {
      const bool exists = key.key >= 0 && key.key < static_cast<int64_t>(t.model->lanes.size());
      range = exists ? t.table->lane_rows(*t.model, LaneId{static_cast<uint32_t>(key.key)}) : std::pair<Row, Row>{0, 0};
      one_lane = true;
    } else {
      cursor.filters.push_back({number, key.key});
      continue;
    }
    narrowed = true;
    cursor.at = std::max(cursor.at, range.first);
    cursor.end = std::max(cursor.at, std::min(cursor.end, range.second));
  }
  for (const Bound& bound : bounds) {
    if (t.table->columns[bound.column].use != Use::kStart || one_lane) apply_bound(t, cursor, bound);
  }
  if (!cursor.filters.empty() && !narrowed && ++t.searches[cursor.filters.front().column] > 1) use_index(t, cursor);
  skip_unwanted(cursor);
  return SQLITE_OK;
}

int next_row(sqlite3_vtab_cursor* vcursor) {
  auto& cursor = *static_cast<Cursor*>(vcursor);
  ++cursor.at;
  skip_unwanted(cursor);
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* vcursor) {
  const auto& cursor = *static_cast<Cursor*>(vcursor);
  return cursor.at >= cursor.end ? 1 : 0;
}

int column_value(sqlite3_vtab_cursor* vcursor, sqlite3_context* context, int number) {
  const auto& cursor = *static_cast<Cursor*>(vcursor);
  const Table& t = table_of(cursor);
  const Cell cell = t.table->columns[static_cast<size_t>(number)].cell(*t.model, cursor.row());
  switch (cell.kind) {
    case Cell::Kind::kNull: sqlite3_result_null(context); break;
    case Cell::Kind::kInteger: sqlite3_result_int64(context, cell.integer); break;
    case Cell::Kind::kReal: sqlite3_result_double(context, cell.real); break;
    case Cell::Kind::kText:
      sqlite3_result_text64(context, cell.text.data(), cell.text.size(), SQLITE_STATIC, SQLITE_UTF8);
      break;
  }
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* vcursor, sqlite3_int64* out) {
  *out = static_cast<Cursor*>(vcursor)->row();
  return SQLITE_OK;
}

const sqlite3_module kModule = [] {
  sqlite3_module module{};
  module.xCreate = connect;
  module.xConnect = connect;
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xDestroy = disconnect;
  module.xOpen = open_cursor;
  module.xClose = close_cursor;
  module.xFilter = filter;
  module.xNext = next_row;
  module.xEof = at_end;
  module.xColumn = column_value;
  module.xRowid = row_id;
  return module;
}();

}  // namespace

int create_virtual_table(sqlite3* connection, const Model& model, const CatalogTable& table) {
  const std::string name(table.name);
  const auto destroy = [](void* registration) { delete static_cast<Registration*>(registration); };
  const int code =
      sqlite3_create_module_v2(connection, name.c_str(), &kModule, new Registration{&model, &table}, destroy);
  if (code != SQLITE_OK) return code;
  return sqlite3_exec(connection, ("CREATE VIRTUAL TABLE " + name + " USING " + name).c_str(), nullptr, nullptr,
                      nullptr);
}

}  // namespace firelane::sql
