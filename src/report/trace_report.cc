#include "report/trace_report.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "analyze/compute/roofline.h"
#include "analyze/ops/ops.h"
#include "analyze/steps/input_pipeline.h"
#include "analyze/verdict/inference.h"
#include "base/check.h"
#include "base/visible_text.h"
#include "report/registry.h"
#include "report/render.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

// A table of a report, with these of its columns; all of them when none is named.
struct TableCut {
  std::string_view table;
  std::vector<std::string_view> columns{};
};

// A part of the document: some tables of one report.
struct SectionCut {
  std::string_view title;
  std::string_view report;
  std::vector<TableCut> tables;
  std::vector<std::pair<std::string_view, std::string_view>> arguments{};  // of the report, beside the rows
  bool with_facts = false;
  bool with_notes = false;
  bool names_command = true;  // "more: firelane REPORT"
};

constexpr size_t kRowsInDocument = 15;

// Leaves only these columns, and shortens what is longer than a page is wide.
void keep_columns(Table& table, const std::vector<std::string_view>& names) {
  std::vector<size_t> kept;
  for (const std::string_view name : names) {
    const auto column =
        std::find_if(table.columns.begin(), table.columns.end(), [&](const Column& each) { return each.name == name; });
    FL_CHECK(column != table.columns.end(), "trace_report: a report has the columns that the document shows");
    kept.push_back(static_cast<size_t>(column - table.columns.begin()));
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

Report section_of(const StudiedTrace& trace, const SectionCut& cut) {
  const ReportSpec* spec = find_report(cut.report);
  FL_CHECK(spec != nullptr, "trace_report: a section names a report");
  Arguments wanted(spec->parameters, kRowsInDocument);
  wanted.for_people = true;
  for (const auto& [name, text] : cut.arguments) {
    FL_CHECK(wanted.set_text(name, text).ok(), "trace_report: a section asks for what the report takes");
  }
  if (!why_not(*spec, trace.model()).empty()) return {.title = std::string(cut.title)};
  Result<Report> made = make_report(*spec, trace, wanted);
  FL_CHECK(made.ok(), "trace_report: a section asks for what every trace has");
  Report all = std::move(made).value();
  Report section{.title = std::string(cut.title)};
  // Above the tables: most sections show no facts.
  const auto of_steps = std::find_if(all.facts.begin(), all.facts.end(),
                                     [](const Fact& fact) { return fact.name == kRecordedStepsFact; });
  if (of_steps != all.facts.end()) {
    section.title += " (" + std::get<std::string>(of_steps->value) + " steps)";
    all.facts.erase(of_steps);
  }
  if (cut.with_facts) section.facts = std::move(all.facts);
  for (const TableCut& wish : cut.tables) {
    const auto table =
        std::find_if(all.tables.begin(), all.tables.end(), [&](const Table& each) { return each.name == wish.table; });
    if (table == all.tables.end() || table->rows.empty()) continue;
    if (!wish.columns.empty()) keep_columns(*table, wish.columns);
    section.tables.push_back(std::move(*table));
  }
  if (cut.with_notes) section.notes = std::move(all.notes);
  if (cut.names_command) section.notes.emplace_back("more: firelane " + std::string(cut.report));
  return section;
}

SectionCut ops_cut(const StudiedTrace& trace) {
  const bool has_device = !trace.get<analyze::ops>().device_name.empty();
  SectionCut cut{.title = "Operators that take the most", .report = "ops"};
  cut.arguments = {{"side", "host"}, {"sort_by", has_device ? "self_device_time_total" : "self_cpu_time_total"}};
  if (has_device) {
    cut.tables = {{"rows",
                   {"name", "count", "self_cpu_time_total_ns", "cpu_time_total_ns", "self_device_time_total_ns",
                    "self_device_percent", "device_time_total_ns"}}};
  } else {
    cut.tables = {{"rows", {"name", "count", "self_cpu_time_total_ns", "self_cpu_percent", "cpu_time_total_ns"}}};
  }
  return cut;
}

// The questions that this trace has no answer to.
Report limits_section(const StudiedTrace& trace) {
  Report section = section_of(trace, {.title = "What this trace cannot answer",
                                      .report = "info",
                                      .tables = {{"answers", {"question", "possible", "reason", "remedy"}}, {"losses"}},
                                      .names_command = false});
  for (Table& table : section.tables) {
    if (table.name != "answers") continue;
    std::erase_if(table.rows, [](const std::vector<Cell>& row) { return row[1] == Cell{int64_t{1}}; });
    table.title.clear();
    keep_columns(table, {"question", "reason", "remedy"});
  }
  std::erase_if(section.tables, [](const Table& table) { return table.rows.empty(); });
  return section;
}

std::vector<Report> sections_of(const StudiedTrace& trace) {
  std::vector<SectionCut> cuts = {
      {.title = "How a step was spent",
       .report = "breakdown",
       .tables = {{"parts"},
                  {"steps",
                   {"step", "duration_ns", "undone_ns", "limit", "compute_ns", "communication_ns", "copy_ns", "idle_ns",
                    "idle_host_ns", "idle_input_ns", "outlier"}},
                  {"phases"},
                  {"annotations"},
                  {"operators"}}},
      ops_cut(trace),
      {.title = "Kernels that take the most",
       .report = "kernels",
       .tables = {{"kernels",
                   {"kind", "name", "calls", "total_ns", "share_percent", "mean_ns", "occupancy_percent", "top_op"}}}}};
  const auto& roofline = trace.get<analyze::roofline>();
  if (roofline.peaks != nullptr && !roofline.rows.empty()) {
    cuts.push_back({.title = "Roofline",
                    .report = "roofline",
                    .tables = {{"roofline",
                                {"op", "dims", "class", "precision", "tensor_cores", "device_ns", "share_percent",
                                 "tflop_s", "gb_s", "bound", "roof_percent"}}},
                    .with_facts = true});
  }
  cuts.push_back({.title = "Modules",
                  .report = "modules",
                  .tables = {{"modules",
                              {"module", "type", "calls", "host_ns", "forward_device_ns", "backward_device_ns",
                               "device_percent", "forward_gflop", "peak_bytes", "limit"}}}});
  SectionCut memory{.title = "Memory", .report = "memory"};
  if (trace.model().memory_events.size() > 0) {
    memory.tables = {{"devices",
                      {"device", "peak_bytes", "capacity_bytes", "peak_percent", "peak_reserved_bytes", "cached_bytes",
                       "growth_per_step_bytes", "out_of_memory"}},
                     {"at_peak"},
                     {"owners"},
                     {"spikes"},
                     {"growth"}};
  }
  memory.tables.push_back({"copies"});
  cuts.push_back(std::move(memory));
  const auto& input = trace.get<analyze::input_pipeline>();
  if (input.loader != analyze::LoaderKind::kNone || !input.transfers.empty()) {
    cuts.push_back(
        {.title = "Input", .report = "input", .tables = {{"transfers"}}, .with_facts = true, .with_notes = true});
  }
  if (trace.get<analyze::find_inference>().decodes > 0) {
    cuts.push_back({.title = "Inference",
                    .report = "inference",
                    .tables = {{"passes"}},
                    .arguments = {{kRows, "5"}},
                    .with_facts = true,
                    .with_notes = true,
                    .names_command = false});
  }
  std::vector<Report> sections;
  for (const SectionCut& cut : cuts) sections.push_back(section_of(trace, cut));
  sections.front().notes = {
      "times are those of the recording; \"Without recording\" has its cost taken out; more: "
      "firelane breakdown, idle, launches, syncs, critical-path"};
  sections.push_back(limits_section(trace));
  sections.push_back(section_of(trace, {.title = "The trace",
                                        .report = "info",
                                        .tables = {{"devices"}, {"recording_options"}},
                                        .with_facts = true,
                                        .names_command = false}));
  return sections;
}

bool says_something(const Report& section) {
  return !section.facts.empty() ||
         std::any_of(section.tables.begin(), section.tables.end(), [](const Table& table) { return is_shown(table); });
}

}  // namespace

TraceReport trace_report(const StudiedTrace& trace, std::string name) {
  TraceReport report{.name = std::move(name), .sections = sections_of(trace)};
  std::erase_if(report.sections, [](const Report& section) { return !says_something(section); });
  return report;
}

}  // namespace firelane::report
