// /api/t/T/report/NAME: the reports of report/registry.h, described. Parameters are the report's.
#include <string>

#include "advise/light_note.h"
#include "report/described.h"
#include "report/registry.h"
#include "serve/handlers.h"

namespace firelane::serve {

namespace {

constexpr int64_t kUsualRows = 1000;
constexpr int64_t kMostReportRows = 100'000;

// Of the report itself: how people see the answer is the page's matter, and how many rows are sent wanted_rows()'s.
bool is_parameter(const report::ReportSpec& spec, const std::string& name) {
  for (const report::Parameter& each : spec.parameters) {
    if (each.name == name) return !each.text_only && name != report::kRows;
  }
  return false;
}

// Their rows are places in another timeline than that of the trace.
bool is_of_light_steps(const report::ReportSpec& spec, const StudiedTrace& trace) {
  return spec.of_times && &advise::timed_trace(trace) != &trace;
}

}  // namespace

size_t wanted_rows(Parameters& wanted) {
  const int64_t rows = wanted.integer("rows", kUsualRows, 0, kMostReportRows);
  return static_cast<size_t>(rows == 0 ? kMostReportRows : rows);
}

Answer report(const ServedTrace& trace, const Request& request) {
  const report::ReportSpec* spec = report::find_report(request.path[4]);
  if (spec == nullptr) return refusal(404, "no such report; docs/viewer-protocol.md lists them");
  Parameters of_answer(request);
  const size_t rows = wanted_rows(of_answer);
  if (!of_answer.ok()) return bad_request(of_answer);
  report::Arguments wanted = spec->arguments();
  for (const auto& [name, text] : request.parameters) {
    if (name == report::kRows) continue;
    if (!is_parameter(*spec, name)) return refusal(400, request.path[4] + " has no parameter '" + name + "'");
    if (const Result<void> set = wanted.set_text(name, text); !set.ok()) return refusal(400, set.error().message);
  }
  if (const std::string reason = report::why_not(*spec, trace.studied().model()); !reason.empty())
    return refusal(400, reason);
  Result<report::Report> made = report::make_report(*spec, trace.studied(), wanted);
  if (!made.ok()) return refusal(400, made.error().message);
  if (made.value().title.empty()) made.value().title = spec->title;
  std::string body = report::described(made.value(), rows);
  if (is_of_light_steps(*spec, trace.studied())) body.insert(1, R"("recorded_steps":"light",)");
  return {.body = std::move(body)};
}

}  // namespace firelane::serve
