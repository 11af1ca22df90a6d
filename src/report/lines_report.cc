// `firelane lines`: what each line of the program costs.
#include "analyze/verdict/lines.h"
#include "analyze/verdict/study.h"
#include "model/how_to_record.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

std::vector<Column> line_columns() {
  return {{"line", "Line", Kind::kText, Align::kByKind, 60},
          {"calls", "Calls", Kind::kNumber},
          {"host_percent", "Host", Kind::kPercent},
          {"host_ns", "In ops", Kind::kDuration},
          {"before_ns", "Before them", Kind::kDuration},
          {"backward_host_ns", "Backward", Kind::kDuration},
          {"device_percent", "Device", Kind::kPercent, Align::kByKind, 0, true, "Share of all device time."},
          {"device_ns", "Device time", Kind::kDuration, Align::kByKind, 0, true},
          {"backward_device_ns", "Backward on device", Kind::kDuration, Align::kByKind, 0, true,
           "Device time of its backward pass."},
          {"kernels", "Kernels", Kind::kNumber, Align::kByKind, 0, true},
          {"most_in", "Most in", Kind::kText, Align::kByKind, 40, true},
          {"called_from", "Called from", Kind::kText, Align::kByKind, 48, true}};
}

Result<Report> make_lines(const StudiedTrace& trace, const Arguments& wanted) {
  const auto& study = trace.get<analyze::study>();
  const auto& lines = trace.get<analyze::line_table>();
  const bool has_device = lines.work_ns > 0;
  const auto per_step = [&](int64_t ns) { return study.per_step(ns); };
  Report report{
      .facts = {{"step_count", "Steps analyzed", Kind::kNumber, static_cast<int64_t>(study.steps.judged)},
                {"line_count", "Lines", Kind::kNumber, static_cast<int64_t>(lines.rows.size())},
                {"step_ns", "Step, as recorded", Kind::kDuration, known_if(lines.is_known, per_step(lines.window_ns))},
                {"other_host_ns", "Host time of no line", Kind::kDuration,
                 known_if(lines.is_known, per_step(lines.other_host_ns))},
                {"work_ns", "Device work", Kind::kDuration, known_if(has_device, per_step(lines.work_ns))},
                {"other_device_ns", "Device work of no line", Kind::kDuration,
                 known_if(has_device, per_step(lines.other_device_ns))}}};
  Table table{.name = "lines", .title = "Lines, per step", .columns = line_columns(), .hide_if_empty = true};
  table.row_count = lines.rows.size();
  for (size_t i = 0; i < shown_of(lines.rows.size(), wanted); ++i) {
    const analyze::LineRow& row = lines.rows[i];
    table.add({row.place.line, per_step(row.calls), percent_of(row.all_host_ns(), lines.window_ns),
               per_step(row.host_ns), per_step(row.before_ns), per_step(row.backward_host_ns),
               known_if(has_device, percent_of(row.all_device_ns(), lines.work_ns)),
               known_if(has_device, per_step(row.device_ns)), known_if(has_device, per_step(row.backward_device_ns)),
               known_if(has_device, per_step(row.kernels)),
               row.most_in.empty() ? Cell{} : Cell{std::string(row.most_in[0].name)},
               row.place.called_from.empty() ? Cell{} : Cell{row.place.called_from}});
  }
  if (!lines.is_known) {
    // torch.profiler knows no lines of operators, but those of Python functions around them.
    const bool by_torch = trace.model().info.origin == Origin::kKineto || trace.model().info.origin == Origin::kOther;
    report.notes.push_back("no lines in this trace: " +
                           how_to_record(trace.model().info, by_torch ? RecordOption::kStacks : RecordOption::kLines));
  }
  report.tables = {std::move(table)};
  return report;
}

}  // namespace

ReportSpec lines_report() {
  return {.name = "lines",
          .title = "Lines",
          .sentence = "Show what each line of the program costs per step: host and device, forward and backward.",
          .examples = {"firelane lines trace.lane", "firelane lines trace.lane --csv"},
          .parameters = {Parameter::rows()},
          .shown_rows = 30,
          .tables = {{"lines"}},
          .make = make_lines};
}

}  // namespace firelane::report
