#include "analyze/steps/steps.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

Result<Report> make_steps(const StudiedTrace& trace, const Arguments&) {
  const auto& table = trace.get<analyze::step_table>();
  Report report{.facts = {{"step_count", "Steps", Kind::kNumber, static_cast<int64_t>(table.rows.size())},
                          {"median_ns", "Median", Kind::kDuration, cell_unless(table.median_ns, kNoNumber)},
                          {"min_ns", "Min", Kind::kDuration, cell_unless(table.min_ns, kNoNumber)},
                          {"max_ns", "Max", Kind::kDuration, cell_unless(table.max_ns, kNoNumber)},
                          {"found_by", "Found by", Kind::kText,
                           table.rows.empty() ? Cell{} : Cell{std::string(analyze::name_of(table.source))}},
                          {"usual_recorded_ns", "Median, without warm-up", Kind::kDuration,
                           cell_unless(table.usual_ns, kNoNumber)},
                          {"spread_ns", "Spread", Kind::kDuration, cell_unless(table.spread_ns, kNoNumber)},
                          {"outside_device_busy_ns", "Busy outside steps", Kind::kDuration,
                           known_if(table.has_device_work, table.outside.device_busy_ns)},
                          {"outside_kernels", "Kernels outside steps", Kind::kNumber,
                           known_if(table.has_device_work, table.outside.kernels)},
                          {"outside_copies_and_sets", "Copies and memsets outside", Kind::kNumber,
                           known_if(table.has_device_work, table.outside.copies_and_sets)},
                          {"outside_ops", "Ops outside steps", Kind::kNumber, table.outside.ops}}};
  Table out{.name = "steps",
            .columns = {{"step", "Step", Kind::kNumber},
                        {"start_ns", "Start", Kind::kDuration},
                        {"duration_ns", "Duration", Kind::kDuration},
                        {"device_busy_ns", "Device busy", Kind::kDuration, Align::kByKind, 0, true},
                        {"device_busy_percent", "Busy", Kind::kPercent, Align::kByKind, 0, true},
                        {"device_idle_ns", "Device idle", Kind::kDuration, Align::kByKind, 0, true},
                        {"kernels", "Kernels", Kind::kNumber, Align::kByKind, 0, true},
                        {"copies_and_sets", "Copies, memsets", Kind::kNumber, Align::kByKind, 0, true},
                        {"ops", "Ops", Kind::kNumber},
                        {.name = "warm_up",
                         .label = "Warm-up",
                         .kind = Kind::kTruth,
                         .help = "One of the first, slower steps; not analyzed."},
                        {.name = "outlier",
                         .label = "Outlier",
                         .kind = Kind::kTruth,
                         .help = "Much slower than the other steps."}},
            .hide_if_empty = true};
  for (const analyze::StepRow& row : table.rows) {
    const double busy_percent =
        row.duration_ns == 0 ? 0
                             : 100.0 * static_cast<double>(row.device_busy_ns) / static_cast<double>(row.duration_ns);
    const auto if_device = [&](const Cell& cell) { return table.has_device_work ? cell : Cell{}; };
    out.add({row.number, row.start_ns, row.duration_ns, if_device(row.device_busy_ns), if_device(busy_percent),
             if_device(row.device_idle_ns), if_device(row.kernels), if_device(row.copies_and_sets), row.ops,
             int64_t{row.warm_up}, int64_t{row.outlier}});
  }
  if (!table.has_device_work) {
    report.notes.push_back("no device work in this trace: how busy the devices were is unknown");
  }
  if (table.rows.empty()) report.notes.push_back(no_steps(trace.model()));
  if (table.overlapping) {
    report.notes.push_back("steps overlap: device time in two windows counts in both, so the rows do not add up");
  }
  report.tables = {std::move(out)};
  return report;
}

}  // namespace

ReportSpec steps_report() {
  return {.name = "steps",
          .title = "Steps",
          .sentence = "Show how long each step took, and how much of it the devices were busy.",
          .examples = {"firelane steps trace.json.gz", "firelane steps trace.json.gz --csv -o steps.csv"},
          .tables = {{"steps"}},
          .make = make_steps,
          .python_name = "steps_summary",
          .of_times = true};
}

}  // namespace firelane::report
