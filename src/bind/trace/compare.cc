#include "bind/trace/compare.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind/trace/trace.h"
#include "compare/gate/gate.h"
#include "compare/run/store.h"
#include "compare/statistics/judge.h"
#include "import/load.h"
#include "report/comparison.h"
#include "report/gate_report.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

using Paths = std::vector<std::string>;

std::vector<compare::Run> open_runs(const Paths& paths) {
  std::vector<compare::Run> runs;
  for (const std::string& path : paths) {
    const StudiedTrace trace(value_or_raise(importer::load_trace(path, {})));
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
