#include "cli/run_files.h"

#include <glob.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <future>

#include "cli/open.h"
#include "sql/database.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

bool is_trace_name(const std::string& name) {
  for (const std::string_view ending : {".lane", ".json", ".json.gz", ".json.zst"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

// The first cell of the first row.
class FirstNumber : public sql::RowVisitor {
 public:
  void columns(const std::vector<std::string>&) override {}
  void row(std::span<const Cell> cells) override {
    if (known || cells.empty()) return;
    known = cells[0].kind == Cell::Kind::kInteger || cells[0].kind == Cell::Kind::kReal;
    value = cells[0].kind == Cell::Kind::kInteger ? static_cast<double>(cells[0].integer) : cells[0].real;
  }
  double value = 0;
  bool known = false;
};

Result<double> number_of(const Model& model, const std::string& name, const std::string& query) {
  FL_TRY(const auto database, sql::Database::open(model));
  FirstNumber first;
  FL_TRY_VOID(database->run(query, first));
  if (!first.known) return Error{"gate.sql." + name + ": the query gives no number: " + query};
  return first.value;
}

Result<compare::Run> run_of(const StudiedTrace& trace, const std::string& file,
                            const std::vector<std::pair<std::string, std::string>>& queries) {
  compare::Run run = compare::summarize(trace);
  run.path = file;
  for (const auto& [name, query] : queries) {
    FL_TRY(const double value, number_of(trace.model(), name, query));
    run.numbers.emplace_back(name, value);
  }
  return run;
}

}  // namespace

Result<std::vector<std::string>> find_run_files(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    std::error_code error;
    if (fs::is_directory(name, error)) {
      std::vector<std::string> found;
      for (fs::directory_iterator at(name, error), end; !error && at != end; at.increment(error)) {
        if (at->is_regular_file(error) && is_trace_name(at->path().string())) found.push_back(at->path().string());
      }
      if (found.empty()) return Error{name + ": no trace in this folder (.lane, .json, .json.gz)"};
      std::sort(found.begin(), found.end());
      out.insert(out.end(), found.begin(), found.end());
    } else if (name.find_first_of("*?[") != std::string::npos && !fs::exists(name, error)) {
      glob_t found{};
      const bool any = ::glob(name.c_str(), 0, nullptr, &found) == 0;
      for (size_t i = 0; any && i < found.gl_pathc; ++i) out.emplace_back(found.gl_pathv[i]);
      ::globfree(&found);
      if (!any) return Error{name + ": no file matches"};
    } else {
      out.push_back(name);
    }
  }
  return out;
}

Result<std::vector<compare::Run>> read_runs(const std::vector<std::string>& files,
                                            const std::vector<std::pair<std::string, std::string>>& queries) {
  constexpr uint64_t kSmallBytes = 256'000'000;
  std::vector<compare::Run> runs;
  // At most two; a future that was asked for its result no longer holds the trace.
  std::deque<std::future<Result<compare::Run>>> working;
  for (const std::string& file : files) {
    FL_TRY(auto trace, open_trace(file));
    if (trace->model().info.has_order_only) return Error{file + ": an execution trace has no times to compare"};
    const size_t most = trace->model().info.content_bytes > kSmallBytes ? 0 : 1;
    working.push_back(std::async(std::launch::async,
                                 [held = std::move(trace), &file, &queries] { return run_of(*held, file, queries); }));
    while (working.size() > most) {
      FL_TRY(compare::Run run, working.front().get());
      runs.push_back(std::move(run));
      working.pop_front();
    }
  }
  while (!working.empty()) {
    FL_TRY(compare::Run run, working.front().get());
    runs.push_back(std::move(run));
    working.pop_front();
  }
  return runs;
}

Result<std::vector<compare::Run>> open_runs(const std::vector<std::string>& names,
                                            const std::vector<std::pair<std::string, std::string>>& queries) {
  FL_TRY(const std::vector<std::string> files, find_run_files(names));
  return read_runs(files, queries);
}

}  // namespace firelane::cli
