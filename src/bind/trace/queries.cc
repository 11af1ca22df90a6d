#include "bind/trace/queries.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/trace/file_sink.h"
#include "bind/trace/report_table.h"
#include "bind/trace/table.h"
#include "export/export_trace.h"
#include "sql/database.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

constexpr std::chrono::milliseconds kBetweenSignals{50};

// Keeps the rows of the last statement that gives any.
class LastResult : public sql::RowVisitor {
 public:
  void columns(const std::vector<std::string>& names) override {
    table_ = {.name = "sql"};
    for (const std::string& name : names) {
      table_.columns.push_back({.name = name, .label = name, .kind = report::Kind::kNumber});
    }
  }
  void row(std::span<const Cell> cells) override {
    std::vector<report::Cell> row;
    for (const Cell& cell : cells) row.push_back(report_cell(cell));
    table_.add(std::move(row));
  }
  const report::Table& table() const { return table_; }

 private:
  static report::Cell report_cell(const Cell& cell) {
    switch (cell.kind) {
      case Cell::Kind::kNull: return {};
      case Cell::Kind::kInteger: return cell.integer;
      case Cell::Kind::kReal: return cell.real;
      case Cell::Kind::kText: return std::string(cell.text);
    }
    return {};
  }

  report::Table table_{.name = "sql"};
};

std::shared_ptr<const exporter::ArrowTable> run_query(const Model& model, const std::string& query,
                                                      const std::atomic<bool>& stop) {
  const std::unique_ptr<sql::Database> database = value_or_raise(sql::Database::open(model));
  LastResult result;
  const Result<void> done = database->run(query, result, {.stop = &stop});
  if (!done.ok()) throw TraceError(done.error().message);
  return arrow_table(result.table());
}

// The query runs on a thread of its own, so that Ctrl-C in Python ends it.
Table sql(const Trace& trace, const std::string& query) {
  std::atomic<bool> stop{false};
  const nb::gil_scoped_release release_gil;
  auto answer = std::async(std::launch::async, [&] { return run_query(*trace.model, query, stop); });
  while (answer.wait_for(kBetweenSignals) != std::future_status::ready) {
    const nb::gil_scoped_acquire python;
    if (PyErr_CheckSignals() == 0) continue;
    stop = true;
    answer.wait();
    nb::raise_python_error();
  }
  return {answer.get()};
}

void write_file(const Trace& trace, const std::filesystem::path& path, const exporter::ExportOptions& options,
                bool force) {
  const nb::gil_scoped_release release_gil;
  FileSink sink(path, force);
  const Result<void> done = exporter::export_trace(*trace.model, options, sink);
  if (!done.ok()) throw TraceError(done.error().message);
  sink.finish();
}

void export_file(const Trace& trace, const std::filesystem::path& path, const std::string& to, const std::string& table,
                 const std::string& metric, bool force) {
  const exporter::ExportOptions options{
      .format = to, .table = table, .metric = metric, .gzip = path.extension() == ".gz", .file = path.string()};
  const Result<void> checked = exporter::check_export(options);
  if (!checked.ok()) throw nb::value_error(checked.error().message.c_str());
  write_file(trace, path, options, force);
}

// What Recording.export_chrome_trace() of the drop-in writes.
void export_as_torch(const Trace& trace, const std::filesystem::path& path, bool collections) {
  const exporter::ExportOptions options{.format = "chrome",
                                        .gzip = path.extension() == ".gz",
                                        .file = path.string(),
                                        .torch = {.plain_texts = true, .has_collections = collections}};
  write_file(trace, path, options, true);
}

}  // namespace

void bind_queries(nb::class_<Trace>& trace) {
  trace.def("sql", &sql, nb::arg("query"),
            "Runs SQL (SQLite's) over the trace's tables; docs/sql.md lists them and the views.\n"
            "Gives the rows of the last statement. Ctrl-C ends a long query.");
  trace.def("export", &export_file, nb::arg("path"), nb::kw_only(), nb::arg("to"), nb::arg("table") = "",
            nb::arg("metric") = "self_cpu", nb::arg("force") = false,
            nb::sig("def export(self, path: str | os.PathLike[str], *, "
                    "to: typing.Literal['chrome', 'perfetto', 'speedscope', 'stacks', 'csv', 'json'], "
                    "table: str = '', metric: typing.Literal['self_cpu', 'self_device'] = 'self_cpu', "
                    "force: bool = False) -> None"),
            "Writes the trace for another tool, compressed when the name ends in .gz. csv needs a table,\n"
            "stacks take a metric. An existing file is replaced only with force=True.");
  trace.def("_export_as_torch", &export_as_torch, nb::arg("path"), nb::kw_only(), nb::arg("collections"),
            nb::sig("def _export_as_torch(self, path: str | os.PathLike[str], *, collections: bool) -> None"));
}

}  // namespace firelane::bind_trace
