#include "report/sweep_report.h"

#include <fmt/format.h>

#include "report/comparison.h"

namespace firelane::report {

namespace {

std::string point_name(const compare::Sweep& sweep, size_t point) {
  std::string out;
  for (size_t i = 0; i < sweep.variables.size(); ++i) {
    out += (i == 0 ? "" : ", ") + sweep.variables[i] + "=" + sweep.points[point].values[i];
  }
  return out;
}

}  // namespace

Report sweep_report(const compare::Sweep& sweep, double price_per_hour) {
  const compare::SweepBest best = compare::find_best(sweep);
  const compare::Throughput kind = compare::throughput_kind(sweep);
  Table table{.name = "points"};
  for (const std::string& name : sweep.variables) table.columns.push_back({name, name, Kind::kText, Align::kRight});
  table.columns.push_back({"mark", "", Kind::kText, Align::kByKind, 0, true});
  for (Column& column : run_columns()) table.columns.push_back(std::move(column));
  table.columns.push_back({"failure", "Failed", Kind::kText, Align::kByKind, 60, true});
  size_t failed = 0;
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    const compare::SweepPoint& point = sweep.points[i];
    std::vector<Cell> row(point.values.begin(), point.values.end());
    row.push_back(text_or_none(i == best.best ? "best" : i == best.knee ? "knee" : ""));
    if (point.run) {
      for (Cell& cell : run_cells(*point.run, price_per_hour)) row.push_back(std::move(cell));
    } else {
      row.resize(table.columns.size() - 1);
      ++failed;
    }
    row.push_back(text_or_none(point.failure));
    table.add(std::move(row));
  }
  if (best.best) {
    const auto rate = [&](size_t point) { return compare::throughput_of(*sweep.points[point].run, kind); };
    const char* unit = kind == compare::Throughput::kTokens    ? "tokens"
                       : kind == compare::Throughput::kSamples ? "samples"
                                                               : "steps";
    std::string text =
        fmt::format("best: {}, {:.4g} {} a second", point_name(sweep, *best.best), rate(*best.best), unit);
    if (best.knee && best.knee != best.best) {
      text += fmt::format("; {} gives {:.0f}% of that", point_name(sweep, *best.knee),
                          100 * rate(*best.knee) / rate(*best.best));
      const compare::Run& knee = *sweep.points[*best.knee].run;
      const compare::Run& top = *sweep.points[*best.best].run;
      if (knee.has_memory && top.has_memory && knee.peak_bytes < top.peak_bytes) {
        text += fmt::format(" with {:.0f}% of its memory",
                            100 * static_cast<double>(knee.peak_bytes) / static_cast<double>(top.peak_bytes));
      }
    }
    table.notes.emplace_back(std::move(text));
    if (kind == compare::Throughput::kSteps) {
      table.notes.emplace_back(
          "not every point's trace has the number of samples per step: the shortest step counts as best");
    }
  }
  if (failed > 0) table.notes.emplace_back(fmt::format("{} of {} points failed", failed, sweep.points.size()));
  return {.tables = {std::move(table)}};
}

}  // namespace firelane::report
