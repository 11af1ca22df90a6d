// Roofline, fusion, modules, memory, input, inference and cost as methods of Trace.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "analyze/compute/copies.h"
#include "analyze/compute/fusion.h"
#include "analyze/compute/roofline.h"
#include "analyze/memory/memory.h"
#include "analyze/modules/modules.h"
#include "analyze/steps/input_pipeline.h"
#include "analyze/verdict/cost.h"
#include "analyze/verdict/inference.h"
#include "bind/trace/answers.h"
#include "report/cost_report.h"
#include "report/fusion_report.h"
#include "report/inference_report.h"
#include "report/input_report.h"
#include "report/memory_report.h"
#include "report/modules_report.h"
#include "report/roofline_report.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

// The table of that name as rows; print() shows the whole of `text`, which may hold fewer rows.
Table answer_table(report::Report all, const report::Report& text, const std::string& name) {
  const auto found = std::find_if(all.tables.begin(), all.tables.end(),
                                  [&](const report::Table& table) { return table.name == name; });
  std::string choices;
  for (const report::Table& table : all.tables) choices += (choices.empty() ? "" : ", ") + table.name;
  if (found == all.tables.end()) throw nb::value_error(("table is one of " + choices).c_str());
  return answer(std::move(*found), name, report::render(text, report::Form::kText));
}

Table roofline_answer(const Trace& trace, const std::string& table) {
  const nb::gil_scoped_release release_gil;
  const auto& result = trace.studied->get<analyze::roofline>();
  return answer_table(report::roofline_report(*trace.model, result),
                      report::roofline_report(*trace.model, result, {.max_rows = 30}), table);
}

Table fusion_answer(const Trace& trace) {
  const nb::gil_scoped_release release_gil;
  const auto& result = trace.studied->get<analyze::fusion_table>();
  return answer_table(report::fusion_report(*trace.model, result),
                      report::fusion_report(*trace.model, result, {.max_rows = 20}), "chains");
}

Table modules_answer(const Trace& trace, const std::string& table, bool by_type, int64_t depth) {
  const nb::gil_scoped_release release_gil;
  const auto& result = trace.studied->get<analyze::module_table>({.by_type = by_type});
  return answer_table(report::modules_report(result, {.max_depth = depth}),
                      report::modules_report(result, {.max_rows = 50, .max_depth = depth}), table);
}

Table memory_answer(const Trace& trace, const std::string& table) {
  const nb::gil_scoped_release release_gil;
  const auto& memory = trace.studied->get<analyze::memory_report>();
  const auto& copies = trace.studied->get<analyze::copy_table>();
  return answer_table(report::memory_report(*trace.model, memory, copies, {.curve = true}),
                      report::memory_report(*trace.model, memory, copies, {.max_rows = 10}), table);
}

Table input_answer(const Trace& trace, const std::string& table) {
  const nb::gil_scoped_release release_gil;
  const report::Report report = report::input_report(*trace.model, trace.studied->get<analyze::input_pipeline>());
  return answer_table(report, report, table);
}

Table inference_answer(const Trace& trace) {
  const nb::gil_scoped_release release_gil;
  const auto& result = trace.studied->get<analyze::find_inference>();
  return answer_table(report::inference_report(result), report::inference_report(result, {.max_rows = 10}), "passes");
}

nb::object cost_answer(const Trace& trace, std::optional<double> price_per_hour, std::optional<double> grams_per_kwh,
                       std::optional<int64_t> samples_per_step, std::optional<int64_t> steps_per_run) {
  const analyze::CostOptions options{.price_per_hour = price_per_hour.value_or(-1),
                                     .grams_per_kwh = grams_per_kwh.value_or(-1),
                                     .samples_per_step = samples_per_step.value_or(-1),
                                     .steps_per_run = steps_per_run.value_or(-1)};
  return parse_json(
      report::render(report::cost_report(analyze::cost_of(*trace.model, options), options), report::Form::kJson));
}

}  // namespace

void bind_analyses(nb::class_<Trace>& trace) {
  trace.def("roofline", &roofline_answer, nb::kw_only(), nb::arg("table") = "roofline",
            nb::sig("def roofline(self, *, table: typing.Literal['roofline', 'utilization'] = 'roofline') -> Table"),
            "FLOP/s and bandwidth per op and shape against what the device can do; FLOPs utilisation per step.");
  trace.def("fusion", &fusion_answer, "Chains of small kernels that one kernel could do, and what that would save.");
  trace.def("modules", &modules_answer, nb::kw_only(), nb::arg("table") = "modules", nb::arg("by_type") = false,
            nb::arg("depth") = -1,
            nb::sig("def modules(self, *, table: typing.Literal['modules', 'phases'] = 'modules', "
                    "by_type: bool = False, depth: int = -1) -> Table"),
            "Time, memory and FLOPs per nn.Module, or per phase. depth=-1 is all.");
  trace.def("memory", &memory_answer, nb::kw_only(), nb::arg("table") = "devices",
            nb::sig("def memory(self, *, table: typing.Literal['devices', 'at_peak', 'owners', 'steps', 'spikes', "
                    "'growth', 'copies', 'curve', 'allocator', 'allocator_shares', 'allocator_curve'] = 'devices') -> "
                    "Table"),
            "Where memory went: peak, what is alive at it, steps, spikes, growth, copies, the curve, the allocator.");
  trace.def("input", &input_answer, nb::kw_only(), nb::arg("table") = "steps",
            nb::sig("def input(self, *, table: typing.Literal['steps', 'transfers'] = 'steps') -> Table"),
            "Waiting for the DataLoader per step, and copies from host to device.");
  trace.def("inference", &inference_answer, "Prefill and decode passes of a language model.");
  trace.def("cost", &cost_answer, nb::kw_only(), nb::arg("price_per_hour") = nb::none(),
            nb::arg("grams_per_kwh") = nb::none(), nb::arg("samples_per_step") = nb::none(),
            nb::arg("steps_per_run") = nb::none(),
            nb::sig("def cost(self, *, price_per_hour: float | None = None, grams_per_kwh: float | None = None, "
                    "samples_per_step: int | None = None, steps_per_run: int | None = None) -> dict[str, typing.Any]"),
            "What a step costs: the words of `firelane cost --json`.");
}

}  // namespace firelane::bind_trace
