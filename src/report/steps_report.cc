#include "report/steps_report.h"

namespace firelane::report {

Report steps_report(const StepTable& table) {
  Report report{
      .facts = {{"step_count", "Steps", Kind::kNumber, static_cast<int64_t>(table.rows.size())},
                {"median_ns", "Median", Kind::kDuration, cell_unless(table.median_ns, kNoNumber)},
                {"min_ns", "Min", Kind::kDuration, cell_unless(table.min_ns, kNoNumber)},
                {"max_ns", "Max", Kind::kDuration, cell_unless(table.max_ns, kNoNumber)},
                {"outside_device_busy_ns", "Busy outside of steps", Kind::kDuration, table.outside.device_busy_ns},
                {"outside_kernels", "Kernels outside of steps", Kind::kNumber, table.outside.kernels},
                {"outside_copies", "Copies outside of steps", Kind::kNumber, table.outside.copies},
                {"outside_ops", "Ops outside of steps", Kind::kNumber, table.outside.ops}}};
  Table out{.name = "steps",
            .columns = {{"step", "Step", Kind::kNumber},
                        {"start_ns", "Start", Kind::kDuration},
                        {"duration_ns", "Duration", Kind::kDuration},
                        {"device_busy_ns", "Device busy", Kind::kDuration},
                        {"device_busy_percent", "Busy", Kind::kPercent},
                        {"device_idle_ns", "Device idle", Kind::kDuration},
                        {"kernels", "Kernels", Kind::kNumber},
                        {"copies", "Copies", Kind::kNumber},
                        {"ops", "Ops", Kind::kNumber}}};
  for (const StepRow& row : table.rows) {
    const double busy_percent =
        row.duration_ns == 0 ? 0
                             : 100.0 * static_cast<double>(row.device_busy_ns) / static_cast<double>(row.duration_ns);
    out.add({row.number, row.start_ns, row.duration_ns, row.device_busy_ns, busy_percent, row.device_idle_ns,
             row.kernels, row.copies, row.ops});
  }
  if (table.rows.empty()) {
    out.notes.push_back("no steps in this trace: call prof.step() after each iteration while recording");
  }
  if (table.overlapping) {
    out.notes.push_back("steps overlap: device time in two windows counts in both, so the rows do not add up");
  }
  report.tables = {std::move(out)};
  return report;
}

}  // namespace firelane::report
