#include "report/registry.h"

#include <algorithm>
#include <utility>

#include "advise/device_words.h"
#include "advise/light_note.h"
#include "base/shell_quoted.h"
#include "report/shared.h"

namespace firelane::report {

const std::vector<ReportSpec>& all_reports() {
  // clang-format off: one a line, so that two people can add one each
  static const std::vector<ReportSpec> reports = {
      info_report(),
      diagnose_report(),
      breakdown_report(),
      idle_report(),
      launches_report(),
      syncs_report(),
      critical_path_report(),
      whatif_report(),
      ops_report(),
      kernels_report(),
      roofline_report(),
      steps_report(),
      lanes_report(),
      lines_report(),
      fusion_report(),
      modules_report(),
      memory_report(),
      input_report(),
      inference_report(),
      cost_report(),
  };
  // clang-format on
  return reports;
}

const ReportSpec* find_report(std::string_view name) {
  const auto& all = all_reports();
  const auto found = std::find_if(all.begin(), all.end(), [&](const ReportSpec& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string why_not(const ReportSpec& spec, const Model& model) {
  if (!model.info.has_order_only || !spec.needs_times) return "";
  return model.info.path + ": an execution trace has no times, which " + std::string(spec.name) +
         " needs; open the trace of the same run with it: firelane " + std::string(spec.name) +
         " TRACE --execution-trace " + shell_quoted(model.info.path);
}

namespace {

// Notes and help are written for NVIDIA's GPUs; of another device they are in its words.
void fit_words(const TraceInfo& info, Report& report) {
  for (Note& note : report.notes) note.text = advise::fit_note(info, std::move(note.text));
  for (Table& table : report.tables) {
    for (Column& column : table.columns) {
      column.help = advise::fit_words(info.origin, info.accelerator, std::move(column.help));
    }
  }
}

}  // namespace

Result<Report> make_report(const ReportSpec& spec, const StudiedTrace& trace, const Arguments& wanted) {
  const StudiedTrace& timed = spec.of_times ? advise::timed_trace(trace) : trace;
  FL_TRY(Report report, spec.make(timed, wanted));
  fit_words(trace.model().info, report);
  if (trace.model().light == nullptr || spec.of_recording) return report;
  const auto is_said = [](const Fact& fact) { return fact.name == kRecordedStepsFact; };
  if (std::none_of(report.facts.begin(), report.facts.end(), is_said)) {
    report.facts.push_back(
        recorded_steps_fact(&timed == &trace ? analyze::RecordedSteps::kFull : analyze::RecordedSteps::kLight));
  }
  if (&timed == &trace) return report;
  if (std::string note = advise::light_note(trace); !note.empty()) report.notes.emplace_back(std::move(note));
  return report;
}

Result<std::string> render(const ReportSpec& spec, const StudiedTrace& trace, Arguments wanted, Form form,
                           const TextStyle& style) {
  if (std::string reason = why_not(spec, trace.model()); !reason.empty()) return Error{std::move(reason)};
  wanted.for_people = form == Form::kText || form == Form::kMarkdown;
  if (form == Form::kText && spec.text != nullptr) return spec.text(trace, wanted, style);
  if (form == Form::kJson && spec.json != nullptr) return spec.json(trace);
  FL_TRY(const Report report, make_report(spec, trace, wanted));
  return render(report, form, style);
}

}  // namespace firelane::report
