#include "analyze/modules/modules.h"

#include <fmt/format.h>

#include "model/how_to_record.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

Table phases_table(const analyze::ModuleTable& modules) {
  Table table{.name = "phases",
              .title = "Phases",
              .columns = {{"phase", "Phase"},
                          {"host_ns", "Host", Kind::kDuration},
                          {"device_ns", "Device", Kind::kDuration, Align::kByKind, 0, true},
                          {"device_percent", "Of device time", Kind::kPercent, Align::kByKind, 0, true,
                           "Share of all device time."},
                          {"kernels", "Kernels", Kind::kNumber, Align::kByKind, 0, true},
                          {"gflop", "GFLOP", Kind::kNumber, Align::kByKind, 0, true},
                          {"allocated_bytes", "Allocated", Kind::kBytes, Align::kByKind, 0, true}}};
  for (const analyze::PhaseRow& row : modules.phases) {
    if (row.host_ns == 0 && row.device_ns == 0) continue;
    const bool has_device = modules.work_ns > 0;
    table.add({std::string(analyze::name_of(row.phase)), row.host_ns, known_if(has_device, row.device_ns),
               known_if(has_device, percent_of(row.device_ns, modules.work_ns)), known_if(has_device, row.kernels),
               row.flops > 0 ? Cell{static_cast<double>(row.flops) / 1e9} : Cell{},
               modules.has_memory ? Cell{row.allocated_bytes} : Cell{}});
  }
  return table;
}

std::vector<Column> module_columns() {
  return {
      {"module", "Module", Kind::kText, Align::kByKind, 48},
      {"type", "Type"},
      {"depth", "Depth", Kind::kNumber},
      {"calls", "Calls", Kind::kNumber},
      {"host_ns", "Host", Kind::kDuration},
      {"self_host_ns", "Self host", Kind::kDuration},
      {"forward_device_ns", "Forward", Kind::kDuration, Align::kByKind, 0, true,
       "Device time of its forward pass, including its submodules."},
      {"backward_device_ns", "Backward", Kind::kDuration, Align::kByKind, 0, true, "Device time of its backward pass."},
      {"device_percent", "Of device time", Kind::kPercent, Align::kByKind, 0, true, "Share of all device time."},
      {"self_forward_device_ns", "Self forward", Kind::kDuration, Align::kByKind, 0, true},
      {"self_backward_device_ns", "Self backward", Kind::kDuration, Align::kByKind, 0, true},
      {"backward_host_ns", "Backward host", Kind::kDuration},
      {"forward_gflop", "GFLOP", Kind::kNumber, Align::kByKind, 0, true},
      {"backward_gflop", "Backward GFLOP", Kind::kNumber, Align::kByKind, 0, true},
      {"allocated_bytes", "Kept", Kind::kBytes, Align::kByKind, 0, true},
      {"peak_bytes", "Peak", Kind::kBytes, Align::kByKind, 0, true},
      {"kernels", "Kernels", Kind::kNumber, Align::kByKind, 0, true},
      {"limit", "Limit", Kind::kText, Align::kByKind, 0, true},
      {"parent", "Inside", Kind::kText, Align::kByKind, 24, true}};
}

std::vector<Cell> cells(const analyze::ModuleTable& table, const analyze::ModuleRow& row) {
  const auto gflop = [](int64_t flops) { return flops > 0 ? Cell{static_cast<double>(flops) / 1e9} : Cell{}; };
  const int64_t device_ns = row.forward_device_ns + row.backward_device_ns;
  const bool has_device = table.work_ns > 0;
  return {row.name,
          row.type,
          row.depth,
          row.calls,
          row.host_ns,
          row.self_host_ns,
          known_if(has_device, row.forward_device_ns),
          known_if(has_device, row.backward_device_ns),
          known_if(has_device, percent_of(device_ns, table.work_ns)),
          known_if(has_device, row.self_forward_device_ns),
          known_if(has_device, row.self_backward_device_ns),
          row.backward_host_ns,
          gflop(row.forward_flops),
          gflop(row.backward_flops),
          table.has_memory ? Cell{row.allocated_bytes} : Cell{},
          table.has_memory ? Cell{row.peak_bytes} : Cell{},
          known_if(has_device, row.kernels),
          known_if(has_device, std::string(analyze::name_of(row.limit))),
          row.parent.empty() ? Cell{} : Cell{row.parent}};
}

Result<Report> make_modules(const StudiedTrace& trace, const Arguments& wanted) {
  const auto& table = trace.get<analyze::module_table>({.by_type = wanted.flag("by_type")});
  const int64_t max_depth = wanted.integer_or("depth", INT64_MAX);
  const bool has_device = table.work_ns > 0;
  Report report{.facts = {{"module_count", "Modules", Kind::kNumber, static_cast<int64_t>(table.rows.size())},
                          {"work_ns", "Device work", Kind::kDuration, known_if(has_device, table.work_ns)},
                          {"without_module_device_ns", "Work in no module", Kind::kDuration,
                           known_if(has_device, table.without_module_device_ns)},
                          {"backward_without_forward_ns", "Backward without forward op", Kind::kDuration,
                           known_if(has_device, table.backward_without_forward_ns)}}};
  Table out{.name = "modules", .title = "Modules", .columns = module_columns(), .hide_if_empty = true};
  size_t left_out = 0;
  for (const analyze::ModuleRow& row : table.rows) {
    if (row.depth > max_depth) continue;
    if (wanted.rows() > 0 && out.rows.size() >= wanted.rows()) {
      ++left_out;
      continue;
    }
    out.add(cells(table, row));
  }
  note_left_out(report, left_out, "modules");
  if (table.rows.empty()) {
    // torch.profiler writes modules of eager programs only with their stacks.
    const bool by_torch = trace.model().info.origin == Origin::kKineto || trace.model().info.origin == Origin::kOther;
    report.notes.push_back(
        "no modules in this trace: " +
        how_to_record(trace.model().info, by_torch ? RecordOption::kStacks : RecordOption::kModules));
  }
  report.tables = {std::move(out), phases_table(table)};
  return report;
}

}  // namespace

ReportSpec modules_report() {
  return {.name = "modules",
          .title = "Modules",
          .sentence = "Show time, memory and FLOPs per nn.Module and per phase, forward and backward.",
          .examples = {"firelane modules trace.json.gz --depth 1", "firelane modules trace.json.gz --by-type --csv"},
          .parameters = {Parameter::flag("by_type", "one row per type of module"),
                         Parameter::integer("depth", 0, 1'000'000,
                                            "modules at most this deep; 0 = the outermost (default: all)"),
                         Parameter::rows()},
          .shown_rows = 50,
          .tables = {{"modules"}, {"phases"}},
          .make = make_modules};
}

}  // namespace firelane::report
