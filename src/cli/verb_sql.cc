// firelane sql FILE [QUERY]: SQL over the trace; without a query, statements from stdin,
// with a prompt when that is a terminal.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/visible_text.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "sql/database.h"

namespace firelane::cli {

namespace {

struct SqlArgs {
  std::string path;
  JoinedPaths joined;
  std::string query;
  double timeout_s = 0;
  OutputOptions output;
};

std::atomic<bool> g_interrupted{false};  // set by Ctrl-C

// While it lives, Ctrl-C ends the query and not the program.
class InterruptGuard {
 public:
  InterruptGuard() {
    g_interrupted = false;
    struct sigaction action{};
    action.sa_handler = [](int) { g_interrupted = true; };  // no SA_RESTART: reading a line is interrupted, too
    ::sigaction(SIGINT, &action, &before_);
  }
  ~InterruptGuard() { ::sigaction(SIGINT, &before_, nullptr); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_{};
};

// Collects results as tables of a report.
class ReportVisitor : public sql::RowVisitor {
 public:
  explicit ReportVisitor(bool for_people) : for_people_(for_people) {}

  void columns(const std::vector<std::string>& names) override {
    report::Table& table = report_.tables.emplace_back();
    if (report_.tables.size() > 1) table.name = "rows_" + std::to_string(report_.tables.size());
    for (const std::string& name : names) {
      table.columns.push_back({.name = name, .label = name, .kind = report::Kind::kText, .max_width = 60});
    }
  }
  void row(std::span<const Cell> cells) override {
    report::Table& table = report_.tables.back();
    std::vector<report::Cell> row;
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool is_number = cells[i].kind == Cell::Kind::kInteger || cells[i].kind == Cell::Kind::kReal;
      if (is_number) {
        if (for_people_)
          table.columns[i].align = report::Align::kRight;
        else
          table.columns[i].kind = report::Kind::kNumber;
      }
      row.push_back(cell(cells[i]));
    }
    table.add(std::move(row));
  }

  report::Report take() { return std::move(report_); }

 private:
  // A report shows two digits of a number with a fraction; a query may be about smaller ones.
  report::Cell cell(const Cell& c) const {
    switch (c.kind) {
      case Cell::Kind::kNull: return {};
      case Cell::Kind::kInteger: return for_people_ ? report::Cell(std::to_string(c.integer)) : c.integer;
      case Cell::Kind::kReal: {
        if (!for_people_) return c.real;
        char digits[32];
        std::snprintf(digits, sizeof(digits), "%.6g", c.real);
        return std::string(digits);
      }
      case Cell::Kind::kText: return std::string(c.text);
    }
    return {};
  }

  report::Report report_;
  bool for_people_;
};

constexpr std::string_view kHelp =
    "A statement ends with a semicolon and may have several lines.\n"
    ".tables         the tables and views\n"
    ".schema [NAME]  the columns of one table, or of all\n"
    ".help           this text\n"
    ".quit           leave (so does Ctrl-D); Ctrl-C ends a query\n";

std::string table_list() {
  std::string out;
  const auto add = [&](std::string_view name, std::string_view meaning) {
    out += name;
    out.append(18 - std::min<size_t>(name.size(), 17), ' ');
    out += std::string(meaning) + "\n";
  };
  for (const CatalogTable& table : catalog()) add(table.name, table.meaning);
  for (const sql::ModelView& view : sql::model_views()) add(view.name, "view: " + std::string(view.meaning));
  return out;
}

std::string schema_of(const std::string& name) {
  if (!name.empty()) {
    const std::string text = sql::describe_table(name);
    return text.empty() ? "no table " + visible_text(name) + "; .tables lists them\n" : text;
  }
  std::string out;
  for (const CatalogTable& table : catalog()) out += sql::describe_table(table.name);
  for (const sql::ModelView& view : sql::model_views()) out += sql::describe_table(view.name);
  return out;
}

class Session {
 public:
  Session(const SqlArgs& args, sql::Database& database, Output& output)
      : args_(args), database_(database), output_(output), terminal_(::isatty(STDIN_FILENO) == 1) {}

  Result<void> run(const std::string& sql) {
    g_interrupted = false;
    ReportVisitor visitor(!args_.output.json && !args_.output.csv);
    const auto limit = std::chrono::duration<double>(args_.timeout_s);
    FL_TRY_VOID(database_.run(
        sql, visitor, {.time = std::chrono::duration_cast<std::chrono::nanoseconds>(limit), .stop = &g_interrupted}));
    const report::Report report = visitor.take();
    if (report.tables.empty()) return {};
    return output_.write(report::render(report, output_.form(), output_.style()));
  }

  // Statements from stdin. On a terminal an error is shown and the next line read; else it ends the session.
  Result<void> run_stdin() {
    if (terminal_) std::fputs("Statements end with ; and .help says more.\n", stderr);
    std::string statement;
    std::string line;
    while (read_line(statement.empty(), line)) {
      if (g_interrupted.exchange(false)) {
        std::fputs("\n", stderr);
        statement.clear();
        continue;
      }
      Result<void> result;
      if (statement.empty() && line.starts_with('.')) {
        if (line == ".quit" || line == ".exit") return {};
        result = run_command(line);
      } else {
        statement += line + "\n";
        if (statement.find_first_not_of(" \t\r\n") == std::string::npos) statement.clear();
        if (!sql::Database::is_complete(statement)) continue;
        result = run(statement);
        statement.clear();
      }
      FL_TRY_VOID(take(result));
    }
    if (statement.empty()) return {};
    return take(run(statement));  // the last one needs no semicolon
  }

 private:
  bool read_line(bool first, std::string& line) {
    if (terminal_) std::fputs(first ? "sql> " : "...> ", stderr);
    char* buffer = nullptr;
    size_t size = 0;
    errno = 0;
    const ssize_t length = ::getline(&buffer, &size, stdin);
    if (length >= 0) line.assign(buffer, static_cast<size_t>(length));
    const bool interrupted = length < 0 && errno == EINTR && g_interrupted;
    std::free(buffer);
    if (interrupted) std::clearerr(stdin);
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    return length >= 0 || interrupted;
  }

  Result<void> run_command(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(line.find_last_of(' ') + 1);
    if (command == ".tables") return output_.write(table_list());
    if (command == ".schema") return output_.write(schema_of(rest));
    if (command == ".help") return output_.write(kHelp);
    return Error{"sql: unknown command " + command + "; .help lists them"};
  }

  Result<void> take(const Result<void>& result) const {
    if (result.ok() || !terminal_) return result;
    std::fprintf(stderr, "firelane: %s\n", visible_text(result.error().message).c_str());
    return {};
  }

  const SqlArgs& args_;
  sql::Database& database_;
  Output& output_;
  bool terminal_;
};

Result<int> run_sql(const SqlArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path, args.joined));
  const Model& model = trace->model();
  FL_TRY(const auto database, sql::Database::open(model));
  const InterruptGuard guard;
  Session session(args, *database, output);
  FL_TRY_VOID(args.query.empty() ? session.run_stdin() : session.run(args.query));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb sql_verb() {
  return {
      .name = "sql",
      .sentence = "Query the trace with SQL; without a query, at a prompt.",
      .examples = {"firelane sql trace.json.gz \"select name, sum(duration_ns) from kernels group by name\"",
                   "firelane sql trace.json.gz --csv < queries.sql"},
      .setup = [](Flags& flags) -> VerbBody {
        auto args = std::make_shared<SqlArgs>();
        add_trace_argument(flags, args->path);
        add_joined_options(flags, args->joined);
        flags.add("QUERY", args->query, "one or more statements; without them, from standard input");
        flags.add("--timeout", args->timeout_s, "seconds after which a query is stopped; 0 = never").between(0.0, 1e6);
        add_report_options(flags, args->output);
        return [args] { return run_sql(*args); };
      }};
}

}  // namespace firelane::cli
