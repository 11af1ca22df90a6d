// `firelane ops`: as torch's table for people, and as a plain table where every number has its unit in its name.
#include "report/ops_table.h"
#include "report/quantity.h"
#include "report/registry.h"

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

Report rows_report(const analyze::OpsResult& result, const OpsTableOptions& options) {
  const bool has_device = !result.device_name.empty();
  Table table{.name = "rows",
              .title = "",
              .columns = {{"name", "Name", Kind::kText, Align::kByKind, 55},
                          {"device_type", "Device", Kind::kText},
                          {"is_user_annotation", "Annotation", Kind::kTruth},
                          {"is_async", "Async", Kind::kTruth},
                          {"is_top_level", "Top level", Kind::kTruth},
                          {"count", "# of Calls", Kind::kNumber},
                          {.name = "self_cpu_time_total_ns",
                           .label = "Self CPU",
                           .kind = Kind::kDuration,
                           .help = "Time in the operator itself, excluding the operators it calls."},
                          {"self_cpu_percent", "Self CPU %", Kind::kPercent},
                          {"cpu_time_total_ns", "CPU total", Kind::kDuration},
                          {"cpu_total_percent", "CPU total %", Kind::kPercent},
                          {"cpu_time_ns", "CPU time avg", Kind::kDuration},
                          {.name = "self_device_time_total_ns",
                           .label = "Self device",
                           .kind = Kind::kDuration,
                           .help = "Device time of the kernels that the operator launched itself."},
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
                          "their own rows, but are not part of any op's device time");
  if (result.overhead_time_ns > 0)
    table.notes.push_back(format_duration(result.overhead_time_ns) + " of recording overhead is not in any row");
  if (result.rows.empty()) table.notes.emplace_back("no operators in this trace");
  return {.facts = {{"device", "Device", Kind::kText, has_device ? Cell{result.device_name} : Cell{}},
                    {"self_cpu_time_total_ns", "Self CPU time total", Kind::kDuration, result.self_cpu_time_total_ns},
                    {"self_device_time_total_ns", "Self device time total", Kind::kDuration,
                     result.self_device_time_total_ns},
                    {"unattributed_device_time_ns", "Device time of no op", Kind::kDuration,
                     result.unattributed_device_time_ns},
                    {"overhead_time_ns", "Recording overhead", Kind::kDuration, result.overhead_time_ns},
                    {"row_count", "Rows in total", Kind::kNumber, static_cast<int64_t>(result.rows.size())}},
          .tables = {std::move(table)}};
}

std::string check_order(std::string_view name) {
  const Result<OpsOrder> order = parse_ops_order(name);
  return order.ok() ? "" : order.error().message;
}

const analyze::OpsResult& grouped_ops(const StudiedTrace& trace, const Arguments& wanted) {
  return trace.get<analyze::ops>({.group_by_input_shape = wanted.flag("group_by_input_shape"),
                                  .group_by_stack = static_cast<uint32_t>(wanted.integer("group_by_stack"))});
}

OpsTableOptions table_options(const Arguments& wanted, const analyze::OpsResult& result) {
  const std::string& side = wanted.text("side");
  OpsTableOptions options{.row_limit = wanted.rows() == 0 ? -1 : static_cast<int64_t>(wanted.rows()),
                          .top_level_only = wanted.flag("top_level"),
                          .side = side == "host"     ? OpsSide::kHost
                                  : side == "device" ? OpsSide::kDevice
                                                     : OpsSide::kBoth,
                          .with_flops = wanted.flag("flops") || result.has_flops};
  if (wanted.is_given("sort_by")) options.order = parse_ops_order(wanted.text("sort_by")).value();
  if (wanted.is_given("time_unit")) {
    const std::string& unit = wanted.text("time_unit");
    options.time_unit = unit == "s"    ? TimeUnit::kSeconds
                        : unit == "ms" ? TimeUnit::kMilliseconds
                                       : TimeUnit::kMicroseconds;
  }
  return options;
}

constexpr std::string_view kNoTimes =
    "an execution trace has no times: calls and shapes are real; times only count nested calls";

Result<Report> make_ops(const StudiedTrace& trace, const Arguments& wanted) {
  const analyze::OpsResult& result = grouped_ops(trace, wanted);
  Report report = rows_report(result, table_options(wanted, result));
  if (trace.model().info.has_order_only) report.tables[0].notes.emplace_back(std::string(kNoTimes));
  return report;
}

std::string ops_text(const StudiedTrace& trace, const Arguments& wanted, const TextStyle& style) {
  const analyze::OpsResult& result = grouped_ops(trace, wanted);
  if (result.rows.empty()) return "note: no operators in this trace\n";
  OpsTableOptions options = table_options(wanted, result);
  if (style.wide) options.max_name_width = options.max_shapes_width = options.max_source_width = std::nullopt;
  const std::string note = trace.model().info.has_order_only ? "note: " + std::string(kNoTimes) + "\n" : "";
  return ops_table(result, options) + note;
}

}  // namespace

ReportSpec ops_report() {
  Parameter stack =
      Parameter::integer("group_by_stack", 0, 1000, "one row per name and this many innermost Python frames");
  stack.fallback = int64_t{0};
  Parameter flops = Parameter::flag("flops", "show FLOPs even if the recording did not ask for them");
  flops.text_only = true;
  return {
      .name = "ops",
      .title = "Operators",
      .sentence = "Show time, memory and FLOPs per operator, like torch's key_averages().table().",
      .examples = {"firelane ops trace.json.gz --sort-by self_cuda_time_total --rows 20",
                   "firelane ops trace.json.gz --group-by-input-shape --json"},
      .parameters = {{.name = "sort_by",
                      .type = ParameterType::kText,
                      .help =
                          "largest first, by torch's names: self_cpu_time_total, cuda_time_total, count, flops, ...",
                      .check = check_order},
                     Parameter::flag("group_by_input_shape", "one row per name and input shapes"),
                     std::move(stack),
                     Parameter::flag("top_level", "only ops that are not called by other ops"),
                     Parameter::choice("side", {"both", "host", "device"},
                                       "rows that run on the CPU, on the device, or both"),
                     std::move(flops),
                     {.name = "time_unit",
                      .type = ParameterType::kText,
                      .help = "one unit for all times",
                      .choices = {"s", "ms", "us"},
                      .text_only = true},
                     Parameter::rows()},
      .shown_rows = 100,  // as in torch
      .tables = {{"rows"}},
      .make = make_ops,
      .text = ops_text,
      .needs_times = false};
}

}  // namespace firelane::report
