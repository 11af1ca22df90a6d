#include "bind/trace/compare.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/trace/documents.h"
#include "bind/trace/trace.h"
#include "compare/gate/gate.h"
#include "compare/run/store.h"
#include "compare/statistics/judge.h"
#include "import/load.h"
#include "report/comparison.h"
#include "report/gate_report.h"
#include "serve/api.h"
#include "serve/one_file.h"
#include "traces/trace_set.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

using Paths = std::vector<std::string>;

std::vector<compare::Run> open_runs(const Paths& paths) {
  std::vector<compare::Run> runs;
  for (const std::string& path : paths) {
    const StudiedTrace trace(value_or_raise(importer::load_trace(path, {})));
    if (trace.model().info.has_order_only) throw TraceError(path + ": an execution trace has no times to compare");
    runs.push_back(compare::summarize(trace));
    runs.back().path = path;
  }
  return runs;
}

// JSON and text of one comparison: what the command prints.
std::pair<std::string, std::string> compare_files(const Paths& before, const Paths& after, double threshold,
                                                  double alpha) {
  const nb::gil_scoped_release release_gil;
  const compare::Difference difference =
      compare::compare_sides(open_runs(before), open_runs(after), {.alpha = alpha, .threshold = threshold});
  constexpr size_t kShownRows = 15;
  return {report::comparison_text(difference, 0, report::Form::kJson, {}),
          report::comparison_text(difference, kShownRows, report::Form::kText, {})};
}

std::string comparison_markdown(const Paths& before, const Paths& after, const compare::JudgeOptions& judge) {
  constexpr size_t kShownRows = 30;
  const compare::Difference difference = compare::compare_sides(open_runs(before), open_runs(after), judge);
  return report::comparison_title(before[0], after[0]) +
         report::comparison_text(difference, kShownRows, report::Form::kMarkdown, {});
}

// The traces are read again: a comparison holds their figures, not the traces.
std::string comparison_page(const Paths& before, const Paths& after, const compare::JudgeOptions& judge,
                            size_t max_bytes) {
  const std::string_view empty = value_or_raise(serve::one_file_page());
  serve::Comparison comparison{.judge = judge, .is_first = true};
  Paths files = before;
  files.insert(files.end(), after.begin(), after.end());
  for (size_t id = 0; id < files.size(); ++id) {
    (id < before.size() ? comparison.before : comparison.after).push_back(id);
  }
  const auto load = [](const std::string& path, const LoadProgress&) { return importer::load_trace(path, {}); };
  const auto traces = std::make_shared<TraceSet>(std::move(files), load);
  traces->wait_until_loaded();
  for (size_t id = 0; id < traces->size(); ++id) {
    if (traces->trace(id) == nullptr) throw TraceError(traces->status(id).error);
  }
  serve::Api api(traces, FIRELANE_VERSION, comparison);
  return value_or_raise(serve::one_file(api, empty, max_bytes));
}

std::optional<std::string> write_comparison(const Paths& before, const Paths& after, double threshold, double alpha,
                                            const std::optional<std::filesystem::path>& path, bool force) {
  const compare::JudgeOptions judge{.alpha = alpha, .threshold = threshold};
  return write_document(
      path, force, [&](size_t max_bytes) { return comparison_page(before, after, judge, max_bytes); },
      [&] { return comparison_markdown(before, after, judge); });
}

View view_comparison(const Paths& before, const Paths& after, double threshold, double alpha, int height) {
  const compare::JudgeOptions judge{.alpha = alpha, .threshold = threshold};
  std::vector<std::string> command = {"compare", "--view", "--before"};
  command.insert(command.end(), before.begin(), before.end());
  command.emplace_back("--after");
  command.insert(command.end(), after.begin(), after.end());
  return make_view([=](size_t max_bytes) { return comparison_page(before, after, judge, max_bytes); },
                   std::move(command), height);
}

std::pair<std::string, std::string> gate_files(const Paths& baseline, const std::string& store,
                                               const std::string& label, const Paths& candidate,
                                               const std::vector<std::pair<std::string, std::string>>& limits,
                                               double alpha) {
  const nb::gil_scoped_release release_gil;
  std::vector<compare::Run> runs = open_runs(baseline);
  if (runs.empty()) {
    for (compare::StoredRun& each : value_or_raise(compare::read_store(store, label))) {
      runs.push_back(std::move(each.run));
    }
  }
  if (runs.empty()) throw TraceError(store + ": no baseline '" + label + "'; make one with firelane baseline add");
  compare::GateOptions options{.alpha = alpha};
  for (const auto& [figure, text] : limits) options.limits.push_back({figure, text});
  const compare::GateResult result = value_or_raise(compare::gate(runs, open_runs(candidate), options));
  return {report::gate_text(result, report::Form::kJson), report::gate_text(result, report::Form::kText)};
}

nb::dict judge_numbers(const std::vector<double>& before, const std::vector<double>& after, double threshold,
                       double alpha, std::optional<std::pair<double, double>> noise, bool with_range) {
  if (before.empty() || after.empty()) throw nb::value_error("judge: a side without runs");
  compare::JudgeOptions options{.alpha = alpha, .threshold = threshold, .with_range = with_range};
  if (noise) options.noise = compare::Noise{noise->first, noise->second};
  const compare::Judgement j = compare::judge(before, after, options);
  nb::dict out;
  out["outcome"] = std::string(name_of(j.outcome));
  out["method"] = std::string(name_of(j.method));
  out["ratio"] = j.ratio;
  out["low"] = j.has_range ? nb::cast(j.range.low) : nb::none();
  out["high"] = j.has_range ? nb::cast(j.range.high) : nb::none();
  out["p"] = j.p;
  out["noise"] = j.noise < 0 ? nb::none() : nb::cast(j.noise);
  out["smallest_change"] = std::isinf(j.smallest_change) ? nb::none() : nb::cast(j.smallest_change);
  out["runs_needed"] = j.runs_needed == 0 ? nb::none() : nb::cast(j.runs_needed);
  return out;
}

}  // namespace

void bind_compare(nb::module_& module) {
  module.def("_compare", &compare_files, nb::arg("before"), nb::arg("after"), nb::arg("threshold"), nb::arg("alpha"));
  module.def(
      "_compare_report", &write_comparison, nb::arg("before"), nb::arg("after"), nb::arg("threshold"), nb::arg("alpha"),
      nb::arg("path").none(), nb::arg("force"),
      nb::sig("def _compare_report(before: collections.abc.Sequence[str], after: collections.abc.Sequence[str], "
              "threshold: float, alpha: float, path: str | os.PathLike[str] | None, force: bool) -> str | None"));
  module.def("_compare_view", &view_comparison, nb::arg("before"), nb::arg("after"), nb::arg("threshold"),
             nb::arg("alpha"), nb::arg("height"));
  module.def("_gate", &gate_files, nb::arg("baseline"), nb::arg("store"), nb::arg("label"), nb::arg("candidate"),
             nb::arg("limits"), nb::arg("alpha"));
  module.def("_judge", &judge_numbers, nb::arg("before"), nb::arg("after"), nb::arg("threshold") = 0.03,
             nb::arg("alpha") = 0.05, nb::arg("noise") = nb::none(), nb::arg("with_range") = true,
             nb::sig("def _judge(before: collections.abc.Sequence[float], after: collections.abc.Sequence[float], "
                     "threshold: float = 0.03, alpha: float = 0.05, noise: tuple[float, float] | None = None, "
                     "with_range: bool = True) -> "
                     "dict[str, typing.Any]"));
  module.def(
      "_warm_up_steps", [](const std::vector<double>& steps) { return compare::warm_up_steps(steps); },
      nb::arg("steps"));
}

}  // namespace firelane::bind_trace
