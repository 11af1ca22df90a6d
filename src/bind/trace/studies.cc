#include "bind/trace/studies.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "advise/diagnose.h"
#include "analyze/verdict/study.h"
#include "bind/trace/answers.h"
#include "report/diagnose_report.h"
#include "report/study_reports.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

constexpr size_t kPrintedRows = 20;

Table diagnose_answer(const Trace& trace) {
  const nb::gil_scoped_release release_gil;
  return answer(report::findings_report(*trace.studied), "findings",
                report::diagnosis(*trace.studied, report::Form::kText));
}

// For `firelane record`, which ends with it.
std::string short_verdict(const Trace& trace, bool color) {
  const nb::gil_scoped_release release_gil;
  return report::short_diagnosis(*trace.studied, {.style = {.color = color}});
}

nb::object diagnosis_dict(const Trace& trace) {
  std::string json;
  {
    const nb::gil_scoped_release release_gil;
    json = report::diagnosis(*trace.studied, report::Form::kJson);
  }
  return parse_json(json);
}

Table breakdown_answer(const Trace& trace) {
  const nb::gil_scoped_release release_gil;
  return answer(report::breakdown_report(*trace.model, trace.studied->get<analyze::study>()), "breakdown");
}

// A report whose second table is the one that has many rows: all of them, of which the first are printed.
Table rows_answer(const Trace& trace, const char* name,
                  report::Report (*make)(const Model& model, const analyze::Study& study, size_t max_rows)) {
  const nb::gil_scoped_release release_gil;
  const auto& result = trace.studied->get<analyze::study>();
  report::Report all = make(*trace.model, result, 0);
  std::swap(all.tables[0], all.tables[1]);
  return answer(std::move(all), name, report::render(make(*trace.model, result, kPrintedRows), report::Form::kText));
}

Table idle_answer(const Trace& trace) { return rows_answer(trace, "idle", report::idle_report); }

Table launches_answer(const Trace& trace) {
  const nb::gil_scoped_release release_gil;
  return answer(report::launches_report(*trace.model, trace.studied->get<analyze::study>()), "launches");
}

Table syncs_answer(const Trace& trace) {
  const nb::gil_scoped_release release_gil;
  return answer(report::syncs_report(*trace.model, trace.studied->get<analyze::study>()), "syncs");
}

Table critical_path_answer(const Trace& trace) {
  return rows_answer(trace, "critical_path", report::critical_path_report);
}

nb::object whatif_answer(const Trace& trace, double host, double kernels, double communication, double copies,
                         double latency) {
  std::string json;
  {
    const nb::gil_scoped_release release_gil;
    const analyze::WhatIf change{.keep_host = host,
                                 .keep_kernels = kernels,
                                 .keep_communication = communication,
                                 .keep_copies = copies,
                                 .keep_latency = latency};
    json = report::render(report::whatif_report(trace.studied->get<analyze::study>(), change), report::Form::kJson);
  }
  return parse_json(json);
}

}  // namespace

void bind_studies(nb::class_<Trace>& trace) {
  trace.def("diagnose", &diagnose_answer,
            "What limits the program and what to change: one row per finding; print() gives the whole verdict.");
  trace.def_prop_ro("diagnosis", &diagnosis_dict, nb::sig("def diagnosis(self) -> dict[str, typing.Any]"),
                    "The verdict with the evidence of each finding: the words of `firelane diagnose --json`.");
  trace.def("_short_verdict", &short_verdict, nb::kw_only(), nb::arg("color") = false);
  trace.def("breakdown", &breakdown_answer, "How a step was spent on device and host; the parts add up to the step.");
  trace.def("idle", &idle_answer, "Why the device did nothing: one row per gap, longest first.");
  trace.def("launches", &launches_answer, "What launches cost, how long work waits, how deep the queue is.");
  trace.def("syncs", &syncs_answer, "Every call that waited for the device: how long, and who asked.");
  trace.def("critical_path", &critical_path_answer, "The chain of dependencies that decides how long a step takes.");
  trace.def("whatif", &whatif_answer, nb::kw_only(), nb::arg("host") = 1.0, nb::arg("kernels") = 1.0,
            nb::arg("communication") = 1.0, nb::arg("copies") = 1.0, nb::arg("latency") = 1.0,
            nb::sig("def whatif(self, *, host: float = 1.0, kernels: float = 1.0, communication: float = 1.0, "
                    "copies: float = 1.0, latency: float = 1.0) -> dict[str, typing.Any]"),
            "How long a step would take if each kind of cost took this part of its time: the dependencies, replayed.");
}

}  // namespace firelane::bind_trace
