// `firelane compare *.lane --by model`: the table of architectures or batch sizes that people make by hand.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "report/comparison.h"

namespace firelane::report {

namespace {

using compare::Run;

std::string key_of(const Run& run, RunsBy by) {
  if (by == RunsBy::kModel) return run.model_name.empty() ? "not recorded" : run.model_name;
  if (by == RunsBy::kBatch) return run.samples == 0 ? "not known" : std::to_string(run.samples);
  return run.path;
}

const char* label_of(RunsBy by) { return by == RunsBy::kModel ? "Model" : by == RunsBy::kBatch ? "Batch" : "File"; }

// Nothing is negative: below 0 is not known.
Cell known(double value) { return value < 0 ? Cell{} : Cell{value}; }

// "bf16", or "bf16 97%, fp32 3%": of the FLOPs.
std::string precisions_text(const Run& run) {
  constexpr double kWorthSaying = 0.005;
  double all = 0;
  for (const compare::PrecisionUse& use : run.precisions) all += use.flops;
  std::string text;
  for (const compare::PrecisionUse& use : run.precisions) {
    if (use.flops < kWorthSaying * all) continue;
    if (use.flops > (1 - kWorthSaying) * all) return use.precision;
    text += (text.empty() ? "" : ", ") + use.precision + " " + std::to_string(std::lround(100 * use.flops / all)) + "%";
  }
  return text;
}

Table precision_table(const char* label) {
  return {.name = "precisions",
          .title = "FLOPs by the precision that the kernels used, while they ran",
          .columns = {{"name", label, Kind::kText, Align::kByKind, 48},
                      {"precision", "Precision", Kind::kText},
                      {"tflop_per_step", "TFLOP a step", Kind::kSmall},
                      {"device_ns", "Their time", Kind::kDuration},
                      {"tflops_per_second", "TFLOP/s", Kind::kSmall},
                      {"peak_tflops_per_second", "Peak TFLOP/s", Kind::kSmall, Align::kByKind, 0, true},
                      {"peak_percent", "Of peak", Kind::kPercent, Align::kByKind, 0, true}},
          .hide_if_empty = true};
}

}  // namespace

std::vector<Column> run_columns() {
  return {{"step_ns", "Step", Kind::kDuration},
          {"samples", "Batch", Kind::kNumber, Align::kByKind, 0, true},
          {"samples_per_second", "Samples/s", Kind::kNumber, Align::kByKind, 0, true},
          {"tokens_per_second", "Tokens/s", Kind::kNumber, Align::kByKind, 0, true},
          {"peak_bytes", "Peak memory", Kind::kBytes, Align::kByKind, 0, true},
          {"busy_percent", "Busy", Kind::kPercent, Align::kByKind, 0, true},
          {"tflops_per_second", "TFLOP/s", Kind::kSmall, Align::kByKind, 0, true},
          {"mfu_percent", "Of peak", Kind::kPercent, Align::kByKind, 0, true},
          {"precision", "Precision", Kind::kText, Align::kByKind, 40, true},
          {"energy_joules", "Energy, J", Kind::kSmall, Align::kByKind, 0, true},
          {"price_per_1000_steps", "Price of 1,000 steps", Kind::kSmall, Align::kByKind, 0, true},
          {"verdict", "Verdict", Kind::kText, Align::kByKind, 60}};
}

std::vector<Cell> run_cells(const Run& run, double price_per_hour) {
  const double step_s = static_cast<double>(run.step_ns) / 1e9;
  const auto rate = [&](double amount) { return amount > 0 && step_s > 0 ? Cell{amount / step_s} : Cell{}; };
  const double busy = run.step_ns > 0 ? 100.0 * static_cast<double>(run.busy_ns) / static_cast<double>(run.step_ns) : 0;
  return {run.step_ns,
          run.samples == 0 ? Cell{} : Cell{run.samples},
          rate(static_cast<double>(run.samples)),
          rate(static_cast<double>(run.tokens)),
          run.has_memory ? Cell{run.peak_bytes} : Cell{},
          run.has_device_work ? Cell{std::min(100.0, busy)} : Cell{},
          rate(run.flops / 1e12),
          known(run.mfu_percent),
          run.precisions.empty() ? Cell{} : Cell{precisions_text(run)},
          known(run.energy_joules),
          price_per_hour < 0 ? Cell{} : Cell{price_per_hour / 3600 * step_s * 1000},
          run.verdict};
}

Report runs_report(const std::vector<Run>& runs, const RunsOptions& options) {
  Table table{
      .name = "runs",
      .columns = {{"name", label_of(options.by), Kind::kText, Align::kByKind, 48}, {"runs", "Runs", Kind::kNumber}}};
  for (Column& column : run_columns()) table.columns.push_back(std::move(column));
  std::vector<std::string> order;
  std::map<std::string, std::vector<Run>> groups;
  for (const Run& run : runs) {
    const std::string key = key_of(run, options.by);
    if (!groups.contains(key)) order.push_back(key);
    groups[key].push_back(run);
  }
  Table precisions = precision_table(label_of(options.by));
  for (const std::string& key : order) {
    const std::string name = options.by == RunsBy::kFile ? std::filesystem::path(key).filename().string() : key;
    const Run run = compare::combine(groups[key]);
    std::vector<Cell> row = {name, static_cast<int64_t>(groups[key].size())};
    for (Cell& cell : run_cells(run, options.price_per_hour)) row.push_back(std::move(cell));
    table.add(std::move(row));
    for (const compare::PrecisionUse& use : run.precisions) {
      precisions.add({name, use.precision, use.flops / 1e12, std::llround(use.device_ns), use.flops_per_s() / 1e12,
                      use.peak_flops_per_s > 0 ? Cell{use.peak_flops_per_s / 1e12} : Cell{},
                      known(use.peak_percent())});
    }
  }
  Report report{.tables = {std::move(table)}};
  if (!options.one_table) report.tables.push_back(std::move(precisions));
  return report;
}

}  // namespace firelane::report
