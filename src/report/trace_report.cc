#include "report/trace_report.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "analyze/compute/copies.h"
#include "analyze/compute/roofline.h"
#include "analyze/device/kernels.h"
#include "analyze/memory/memory.h"
#include "analyze/modules/modules.h"
#include "analyze/ops/ops.h"
#include "analyze/steps/input_pipeline.h"
#include "analyze/trace/info.h"
#include "analyze/verdict/inference.h"
#include "base/visible_text.h"
#include "report/inference_report.h"
#include "report/info_report.h"
#include "report/input_report.h"
#include "report/kernels_report.h"
#include "report/memory_report.h"
#include "report/modules_report.h"
#include "report/ops_table.h"
#include "report/render.h"
#include "report/roofline_report.h"
#include "report/study_reports.h"

namespace firelane::report {

namespace {

constexpr size_t kRows = 15;

// Leaves only these columns, and shortens what is longer than a page is wide.
void keep_columns(Table& table, std::initializer_list<std::string_view> names) {
  std::vector<size_t> kept;
  for (const std::string_view name : names) {
    const auto column =
        std::find_if(table.columns.begin(), table.columns.end(), [&](const Column& each) { return each.name == name; });
    if (column != table.columns.end()) kept.push_back(static_cast<size_t>(column - table.columns.begin()));
  }
  std::vector<Column> columns;
  for (const size_t c : kept) columns.push_back(table.columns[c]);
  for (std::vector<Cell>& row : table.rows) {
    std::vector<Cell> cells;
    for (const size_t c : kept) {
      cells.push_back(std::move(row[c]));
      auto* text = std::get_if<std::string>(&cells.back());
      if (text != nullptr && table.columns[c].max_width != 0) *text = shorten_middle(visible_text(*text), kPageWidth);
    }
    row = std::move(cells);
  }
  table.columns = std::move(columns);
}

// Moves the table of that name out of `from`; nothing when it has no rows.
void take_table(Report& from, std::string_view name, Report& to, std::initializer_list<std::string_view> columns = {}) {
  const auto table =
      std::find_if(from.tables.begin(), from.tables.end(), [&](const Table& each) { return each.name == name; });
  if (table == from.tables.end() || table->rows.empty()) return;
  if (columns.size() > 0) keep_columns(*table, columns);
  to.tables.push_back(std::move(*table));
}

Report breakdown_section(const StudiedTrace& trace) {
  Report all = breakdown_report(trace.model(), trace.get<analyze::study>());
  Report section{.title = "How a step was spent"};
  take_table(all, "parts", section);
  take_table(all, "steps", section,
             {"step", "duration_ns", "undone_ns", "limit", "compute_ns", "communication_ns", "copy_ns", "idle_ns",
              "idle_host_ns", "idle_input_ns", "outlier"});
  take_table(all, "phases", section);
  take_table(all, "annotations", section);
  take_table(all, "operators", section);
  section.notes.push_back(
      "times are those of the recording; \"Without recording\" has its cost taken out; more: "
      "firelane breakdown, idle, launches, syncs, critical-path");
  return section;
}

Report ops_section(const StudiedTrace& trace) {
  const auto& result = trace.get<analyze::ops>();
  const OpsTableOptions options{
      .order = result.device_name.empty() ? OpsOrder::kSelfCpuTimeTotal : OpsOrder::kSelfDeviceTimeTotal,
      .row_limit = static_cast<int64_t>(kRows),
      .side = OpsSide::kHost};
  Report all = ops_report(result, options);
  Report section{.title = "Operators that take the most"};
  if (result.device_name.empty()) {
    take_table(all, "rows", section,
               {"name", "count", "self_cpu_time_total_ns", "self_cpu_percent", "cpu_time_total_ns"});
  } else {
    take_table(all, "rows", section,
               {"name", "count", "self_cpu_time_total_ns", "cpu_time_total_ns", "self_device_time_total_ns",
                "self_device_percent", "device_time_total_ns"});
  }
  section.notes.push_back("more: firelane ops");
  return section;
}

Report kernels_section(const StudiedTrace& trace) {
  const auto& table = trace.get<analyze::kernel_table>();
  Report all = kernels_report(trace.model(), table, {.max_rows = kRows, .sum_rest = true});
  Report section{.title = "Kernels that take the most"};
  take_table(all, "kernels", section,
             {"kind", "name", "calls", "total_ns", "share_percent", "mean_ns", "occupancy_percent", "top_op"});
  section.notes.push_back("more: firelane kernels");
  return section;
}

Report roofline_section(const StudiedTrace& trace) {
  const auto& result = trace.get<analyze::roofline>();
  Report section{.title = "Near to what the device can do"};
  if (result.peaks == nullptr) return section;
  Report all = roofline_report(trace.model(), result, {.max_rows = kRows});
  take_table(all, "roofline", section,
             {"op", "dims", "class", "precision", "tensor_cores", "device_ns", "share_percent", "tflop_s", "gb_s",
              "bound", "roof_percent"});
  if (!section.tables.empty()) section.facts = std::move(all.facts);
  section.notes.push_back("more: firelane kernels --roofline");
  return section;
}

Report modules_section(const StudiedTrace& trace) {
  Report all = modules_report(trace.get<analyze::module_table>(), {.max_rows = kRows});
  Report section{.title = "Modules"};
  take_table(all, "modules", section,
             {"module", "type", "calls", "host_ns", "forward_device_ns", "backward_device_ns", "device_percent",
              "forward_gflop", "peak_bytes", "limit"});
  section.notes.push_back("more: firelane modules");
  return section;
}

Report memory_section(const StudiedTrace& trace) {
  Report all = memory_report(trace.model(), trace.get<analyze::memory_report>(), trace.get<analyze::copy_table>(),
                             {.max_rows = kRows});
  Report section{.title = "Memory"};
  if (trace.model().memory_events.size() > 0) {
    take_table(all, "devices", section,
               {"device", "peak_bytes", "capacity_bytes", "peak_percent", "peak_reserved_bytes", "cached_bytes",
                "growth_per_step_bytes", "out_of_memory"});
    take_table(all, "at_peak", section);
    take_table(all, "owners", section);
    take_table(all, "spikes", section);
    take_table(all, "growth", section);
  }
  take_table(all, "copies", section);
  section.notes.push_back("more: firelane memory");
  return section;
}

Report input_section(const StudiedTrace& trace) {
  const auto& input = trace.get<analyze::input_pipeline>();
  Report section{.title = "Input"};
  if (input.loader == analyze::LoaderKind::kNone && input.transfers.empty()) return section;
  Report all = input_report(trace.model(), input);
  section.facts = std::move(all.facts);
  take_table(all, "transfers", section);
  section.notes = std::move(all.notes);
  section.notes.push_back("more: firelane input");
  return section;
}

Report inference_section(const StudiedTrace& trace) {
  const auto& inference = trace.get<analyze::find_inference>();
  Report section{.title = "Inference"};
  if (inference.decodes == 0) return section;
  Report all = inference_report(inference, {.max_rows = 5});
  section.facts = std::move(all.facts);
  take_table(all, "passes", section);
  section.notes = std::move(all.notes);
  return section;
}

Report limits_section(const StudiedTrace& trace) {
  Report all = info_report(trace.model(), trace.get<analyze::describe_trace>());
  Report section{.title = "What this trace cannot answer"};
  for (Table& table : all.tables) {
    if (table.name != "answers") continue;
    const auto possible = std::find_if(table.columns.begin(), table.columns.end(),
                                       [](const Column& column) { return column.name == "possible"; });
    const auto at = static_cast<size_t>(possible - table.columns.begin());
    std::erase_if(table.rows, [&](const std::vector<Cell>& row) { return row[at] == Cell{int64_t{1}}; });
    table.title.clear();
  }
  take_table(all, "answers", section, {"question", "reason", "remedy"});
  take_table(all, "losses", section);
  return section;
}

Report trace_section(const StudiedTrace& trace) {
  Report all = info_report(trace.model(), trace.get<analyze::describe_trace>());
  Report section{.title = "The trace", .facts = std::move(all.facts)};
  take_table(all, "devices", section);
  take_table(all, "recording_options", section);
  return section;
}

bool says_something(const Report& section) {
  return !section.facts.empty() ||
         std::any_of(section.tables.begin(), section.tables.end(), [](const Table& table) { return is_shown(table); });
}

}  // namespace

TraceReport trace_report(const StudiedTrace& trace, std::string name) {
  TraceReport report{.name = std::move(name)};
  for (const auto section : {breakdown_section, ops_section, kernels_section, roofline_section, modules_section,
                             memory_section, input_section, inference_section, limits_section, trace_section}) {
    Report made = section(trace);
    if (says_something(made)) report.sections.push_back(std::move(made));
  }
  return report;
}

}  // namespace firelane::report
