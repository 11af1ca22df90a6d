// The reports: each is declared once, and is then a verb of the command, a route of the server (/api/t/T/report/NAME),
// a method of Python's Trace, and can be a section of `firelane report`. So none of them can know a report, a parameter
// or a limit that the others do not.
//
//   const ReportSpec* spec = find_report("kernels");
//   Arguments wanted = spec->arguments();
//   FL_TRY_VOID(wanted.set_text("sort_by", "calls"));
//   FL_TRY(const std::string text, render(*spec, trace, wanted, Form::kText));
//
// To add one: write report/NAME_report.cc with `ReportSpec NAME_report()`, declare it below, add its line to
// all_reports() in registry.cc, give it a golden output in tests/cli and a section in docs/cli.md.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/arguments.h"
#include "report/table.h"
#include "traces/studied_trace.h"

namespace firelane::report {

// What Python gives: a Table, which print() shows as text, or a dict of facts and tables.
enum class PythonForm : uint8_t { kTable, kDict };

struct ReportTable {
  std::string_view name;
  std::string_view flag = "";  // the flag without which the report does not have it
};

struct ReportSpec {
  std::string_view name;                     // "critical-path": the verb and the route
  std::string_view title;                    // "Critical path"
  std::string_view sentence;                 // for --help and docstrings: one sentence
  std::array<std::string_view, 2> examples;  // real commands
  std::vector<Parameter> parameters;
  size_t shown_rows = 0;            // of each table, for people; 0 = all
  std::vector<ReportTable> tables;  // that make() gives; the one that Python gives first
  Result<Report> (*make)(const StudiedTrace& trace, const Arguments& wanted);
  // Where text, or JSON, is more than the tables of the report.
  std::string (*text)(const StudiedTrace& trace, const Arguments& wanted, const TextStyle& style) = nullptr;
  std::string (*json)(const StudiedTrace& trace) = nullptr;
  // Python's method, where the name is taken by a table of the trace (trace.steps); "" = the name with _ for -.
  std::string_view python_name = "";
  PythonForm python_form = PythonForm::kTable;
  bool needs_times = true;    // says nothing about a trace that has only the order of calls
  bool of_times = false;      // made of advise::timed_trace(): the light steps where they tell, else the trace
  bool of_recording = false;  // about the recording as a whole, light and full steps alike

  Arguments arguments() const { return Arguments(parameters, shown_rows); }
};

// In the order of --help.
const std::vector<ReportSpec>& all_reports();
const ReportSpec* find_report(std::string_view name);

// Why the report says nothing about this trace; "" where it does. make() is not to be asked then.
std::string why_not(const ReportSpec& spec, const Model& model);

// spec.make() of what the report is about. All fronts ask by this.
Result<Report> make_report(const ReportSpec& spec, const StudiedTrace& trace, const Arguments& wanted);

// The answer in that form, as the command prints it. An Error says which argument is wrong.
Result<std::string> render(const ReportSpec& spec, const StudiedTrace& trace, Arguments wanted, Form form,
                           const TextStyle& style = {});

ReportSpec info_report();
ReportSpec diagnose_report();
ReportSpec breakdown_report();
ReportSpec idle_report();
ReportSpec launches_report();
ReportSpec syncs_report();
ReportSpec critical_path_report();
ReportSpec whatif_report();
ReportSpec ops_report();
ReportSpec kernels_report();
ReportSpec roofline_report();
ReportSpec steps_report();
ReportSpec lanes_report();
ReportSpec lines_report();
ReportSpec fusion_report();
ReportSpec modules_report();
ReportSpec memory_report();
ReportSpec input_report();
ReportSpec inference_report();
ReportSpec cost_report();

}  // namespace firelane::report
