// Comparisons of runs as people and programs read them: two sides with what changed and why, or many runs in a table.
#pragma once

#include <string>
#include <vector>

#include "compare/difference/difference.h"
#include "report/table.h"

namespace firelane::report {

// "12.3% slower (9.8% to 14.9%): ...": how much, in what range, and whether that is more than noise.
std::string comparison_headline(const compare::Difference& difference);

// `rows`: of each table at most, the rest summed up in a note; 0 = all.
Report comparison_report(const compare::Difference& difference, size_t rows);
// The headline and the reasons, then the report.
std::string comparison_text(const compare::Difference& difference, size_t rows, Form form, const TextStyle& style);

// "# Comparison of before.lane with after.lane": the title of a Markdown document.
std::string comparison_title(const std::string& before, const std::string& after);

enum class RunsBy : uint8_t { kFile, kModel, kBatch };

struct RunsOptions {
  RunsBy by = RunsBy::kFile;
  double price_per_hour = -1;  // of all devices of a run; -1 not given
  bool one_table = false;      // the runs alone: CSV is for a spreadsheet
};

// The figures of a run that tables of runs share, and their columns.
std::vector<Column> run_columns();
std::vector<Cell> run_cells(const compare::Run& run, double price_per_hour);

// One row a run, or a group of runs that agree in what they are compared by.
Report runs_report(const std::vector<compare::Run>& runs, const RunsOptions& options);

}  // namespace firelane::report
