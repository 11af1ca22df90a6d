#include "report/cost_report.h"

namespace firelane::report {

namespace {

void add_small(Report& report, std::string name, std::string label, double value) {
  report.facts.push_back({std::move(name), std::move(label), Kind::kSmall, cell_unless(value, -1.0)});
}

}  // namespace

Report cost_report(const analyze::Cost& cost, const analyze::CostOptions& options) {
  Report report{
      .facts = {{"step_count", "Steps", Kind::kNumber, static_cast<int64_t>(cost.steps.size())},
                {"median_step_ns", "Step, median", Kind::kDuration, cell_unless(cost.median_step_ns, kNoNumber)},
                {"true_step_ns", "Step without recording", Kind::kDuration, cell_unless(cost.true_step_ns, kNoNumber)},
                {"mean_power_watts", "Power, W", Kind::kNumber, cell_unless(cost.mean_power_watts, -1.0)}}};
  add_small(report, "energy_joules", "Energy, J", cost.energy_joules);
  add_small(report, "energy_per_step_joules", "Energy per step, J", cost.energy_per_step_joules);
  add_small(report, "joules_per_sample", "Energy per sample, J", cost.joules_per_sample);
  add_small(report, "price_per_step", "Price per step", cost.price_per_step);
  add_small(report, "price_per_1000_samples", "Price per 1,000 samples", cost.price_per_1000_samples);
  add_small(report, "price_per_run", "Price per run", cost.price_per_run);
  add_small(report, "grams_per_step", "CO2 per step, g", cost.grams_per_step);
  add_small(report, "grams_per_run", "CO2 per run, g", cost.grams_per_run);
  Table table{.name = "steps",
              .columns = {{"step", "Step", Kind::kNumber},
                          {"duration_ns", "Duration", Kind::kDuration},
                          {"energy_joules", "Energy, J", Kind::kSmall, Align::kByKind, 0, true}},
              .hide_if_empty = true};
  for (const analyze::StepCost& step : cost.steps) {
    table.add({step.step, step.duration_ns, cell_unless(step.energy_joules, -1.0)});
  }
  report.tables = {std::move(table)};
  if (cost.power_tracks == 0) {
    report.notes.emplace_back(cost.power_readings == 0
                                  ? "no power in this trace: energy and CO2 are not known"
                                  : "power was read once, energy needs two readings: record for longer");
  }
  if (cost.steps.empty()) {
    report.notes.emplace_back(
        "no steps in this trace: record with schedule=..., and call prof.step() after each iteration");
  } else if (options.price_per_hour < 0) {
    report.notes.emplace_back("add --price-per-hour to see what a step costs");
  } else if (cost.true_step_ns == kNoNumber) {
    report.notes.emplace_back("by the recorded steps: without the recorder they are shorter");
  }
  return report;
}

}  // namespace firelane::report
