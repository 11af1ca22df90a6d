// The ops rows as a plain table: every number with its unit in its name.
#include "report/ops_table.h"
#include "report/quantity.h"

namespace firelane::report {

namespace {

Cell share_cell(int64_t part, int64_t whole) {
  if (whole == 0) return {};
  return static_cast<double>(part) * 100.0 / static_cast<double>(whole);
}

std::string joined(const std::vector<std::string>& frames) {
  std::string out;
  for (const std::string& frame : frames) out += (out.empty() ? "" : ";") + frame;
  return out;
}

}  // namespace

Report ops_report(const analyze::OpsResult& result, const OpsTableOptions& options) {
  const bool has_device = !result.device_name.empty();
  Table table{.name = "rows",
              .title = "",
              .columns = {{"name", "Name", Kind::kText, Align::kByKind, 55},
                          {"device_type", "Device", Kind::kText},
                          {"is_user_annotation", "Annotation", Kind::kTruth},
                          {"is_async", "Async", Kind::kTruth},
                          {"is_top_level", "Top level", Kind::kTruth},
                          {"count", "# of Calls", Kind::kNumber},
                          {"self_cpu_time_total_ns", "Self CPU", Kind::kDuration},
                          {"self_cpu_percent", "Self CPU %", Kind::kPercent},
                          {"cpu_time_total_ns", "CPU total", Kind::kDuration},
                          {"cpu_total_percent", "CPU total %", Kind::kPercent},
                          {"cpu_time_ns", "CPU time avg", Kind::kDuration},
                          {"self_device_time_total_ns", "Self device", Kind::kDuration},
                          {"self_device_percent", "Self device %", Kind::kPercent, Align::kByKind, 0, true},
                          {"device_time_total_ns", "Device total", Kind::kDuration},
                          {"device_time_ns", "Device time avg", Kind::kDuration},
                          {"cpu_memory_usage_bytes", "CPU Mem", Kind::kBytes, Align::kByKind, 0, true},
                          {"self_cpu_memory_usage_bytes", "Self CPU Mem", Kind::kBytes, Align::kByKind, 0, true},
                          {"device_memory_usage_bytes", "Device Mem", Kind::kBytes, Align::kByKind, 0, true},
                          {"self_device_memory_usage_bytes", "Self device Mem", Kind::kBytes, Align::kByKind, 0, true},
                          {"flops", "FLOPs (torch)", Kind::kNumber},
                          {"flops_total", "FLOPs total", Kind::kNumber},
                          {"self_flops", "Self FLOPs", Kind::kNumber},
                          {"input_shapes", "Input Shapes", Kind::kText, Align::kByKind, 80, true},
                          {"stack", "Source Location", Kind::kText, Align::kByKind, 75, true}}};
  const auto memory = [&](int64_t bytes) -> Cell {
    if (!result.has_memory) return {};
    return bytes;
  };
  for (const analyze::OpsRow* row : shown_ops(result, options)) {
    table.add({row->name,
               std::string(row->on_device ? result.device_name : "cpu"),
               int64_t{row->is_user_annotation},
               int64_t{row->is_async},
               int64_t{row->is_top_level},
               row->count,
               row->self_cpu_time_total_ns,
               share_cell(row->self_cpu_time_total_ns, result.self_cpu_time_total_ns),
               row->cpu_time_total_ns,
               row->is_async ? Cell{} : share_cell(row->cpu_time_total_ns, result.self_cpu_time_total_ns),
               row->cpu_time_ns(),
               row->self_device_time_total_ns,
               share_cell(row->self_device_time_total_ns, result.self_device_time_total_ns),
               row->device_time_total_ns,
               row->device_time_ns(),
               memory(row->cpu_memory_usage_bytes),
               memory(row->self_cpu_memory_usage_bytes),
               memory(row->device_memory_usage_bytes),
               memory(row->self_device_memory_usage_bytes),
               row->flops,
               row->flops_total,
               row->self_flops,
               text_or_none(row->input_shapes),
               text_or_none(joined(row->stack))});
  }
  if (result.unattributed_device_time_ns > 0)
    table.notes.push_back(format_duration(result.unattributed_device_time_ns) +
                          " of device time were launched by no op (CUDA graphs, kernels of other libraries); they have "
                          "rows of their own but are in no op's device time");
  if (result.overhead_time_ns > 0)
    table.notes.push_back(format_duration(result.overhead_time_ns) + " of recording overhead are in no row");
  return {.facts = {{"device", "Device", Kind::kText, has_device ? Cell{result.device_name} : Cell{}},
                    {"self_cpu_time_total_ns", "Self CPU time total", Kind::kDuration, result.self_cpu_time_total_ns},
                    {"self_device_time_total_ns", "Self device time total", Kind::kDuration,
                     result.self_device_time_total_ns},
                    {"unattributed_device_time_ns", "Device time of no op", Kind::kDuration,
                     result.unattributed_device_time_ns},
                    {"overhead_time_ns", "Recording overhead", Kind::kDuration, result.overhead_time_ns},
                    {"row_count", "Rows in all", Kind::kNumber, static_cast<int64_t>(result.rows.size())}},
          .tables = {std::move(table)}};
}

}  // namespace firelane::report
