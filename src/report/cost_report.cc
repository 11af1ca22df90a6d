#include "analyze/verdict/cost.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

void add_small(Report& report, std::string name, std::string label, double value) {
  report.facts.push_back({std::move(name), std::move(label), Kind::kSmall, cell_unless(value, -1.0)});
}

Result<Report> make_cost(const StudiedTrace& trace, const Arguments& wanted) {
  const analyze::CostOptions options{.price_per_hour = wanted.number_or("price_per_hour", -1),
                                     .grams_per_kwh = wanted.number_or("grams_per_kwh", -1),
                                     .samples_per_step = wanted.integer_or("samples_per_step", -1),
                                     .steps_per_run = wanted.integer_or("steps_per_run", -1),
                                     .overhead_factor = wanted.number("overhead_factor")};
  const analyze::Cost cost = analyze::cost_of(trace, options);
  Report report{.facts = {{"step_count", "Steps", Kind::kNumber, static_cast<int64_t>(cost.steps.size())},
                          {"usual_ns", "Step", Kind::kDuration, cell_unless(cost.usual_ns, kNoNumber)},
                          {"usual_recorded_ns",
                           cost.steps.empty() ? "  while recording" : recorded_label(trace.get<analyze::study>()),
                           Kind::kDuration, cell_unless(cost.usual_recorded_ns, kNoNumber)},
                          {"step_ns", "Step, on average", Kind::kDuration, cell_unless(cost.step_ns, kNoNumber)},
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
                                  ? "no power readings in this trace: energy and CO2 are unknown"
                                  : "power was read once, energy needs two readings: record for longer");
  }
  if (cost.steps.empty()) {
    report.notes.emplace_back(no_steps(trace.model()));
  } else if (options.price_per_hour < 0) {
    report.notes.emplace_back("", "add --price-per-hour to see what a step costs");
  } else if (cost.estimated) {
    report.notes.emplace_back(
        "the cost of recording is estimated; time some steps without recording for a more precise cost");
  }
  return report;
}

}  // namespace

ReportSpec cost_report() {
  constexpr double kMuch = 1e9;
  constexpr int64_t kMany = int64_t{1} << 50;
  Parameter overhead = Parameter::number("overhead_factor", 1, 10, "X",
                                         "energy of the data center divided by energy of the device (PUE)");
  overhead.fallback = 1.0;
  return {
      .name = "cost",
      .title = "Cost",
      .sentence = "Show what a step costs: energy where power was recorded, money and CO2 at your prices.",
      .examples = {"firelane cost trace.json.gz --price-per-hour 3.5",
                   "firelane cost run.lane --price-per-hour 28 --samples-per-step 256 --grams-per-kwh 300"},
      .parameters = {Parameter::number("price_per_hour", 0, kMuch, "PRICE", "of the machine, in any currency"),
                     Parameter::number("grams_per_kwh", 0, kMuch, "G", "CO2 of the electricity"),
                     Parameter::integer("samples_per_step", 1, kMany, "batch size of a step"),
                     Parameter::integer("steps_per_run", 1, kMany, "steps of the whole training"), std::move(overhead)},
      .tables = {{"steps"}},
      .make = make_cost,
      .python_form = PythonForm::kDict};
}

}  // namespace firelane::report
