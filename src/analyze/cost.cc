#include "analyze/cost.h"

#include <algorithm>
#include <string_view>

#include "analyze/device_work.h"
#include "analyze/find_steps.h"
#include "analyze/info.h"
#include "analyze/median.h"

namespace firelane {

namespace {

constexpr double kNsPerHour = 3.6e12;
constexpr double kJoulesPerKwh = 3.6e6;

struct Sample {
  int64_t time_ns;
  double watts;
};

bool holds(std::string_view text, std::string_view lower, std::string_view upper) {
  return text.find(lower) != std::string_view::npos || text.find(upper) != std::string_view::npos;
}

// By track; those that are not of power are empty.
std::vector<std::vector<Sample>> power_samples(const Model& model) {
  const CounterTracks& tracks = model.counter_tracks;
  std::vector<std::vector<Sample>> out(tracks.size());
  for (size_t i = 0; i < model.counter_samples.size(); ++i) {
    const uint32_t track = model.counter_samples.track[i];
    const std::string_view name = model.text(tracks.name[track]);
    const std::string_view series = model.text(tracks.series[track]);
    if (!holds(name, "power", "Power") && !holds(series, "power", "Power")) continue;
    const bool in_milliwatts = holds(name, "mW", "milliwatt") || holds(series, "mW", "milliwatt");
    out[track].push_back(
        {model.counter_samples.time_ns[i], model.counter_samples.value[i] / (in_milliwatts ? 1e3 : 1)});
  }
  return out;
}

double watts_at(const std::vector<Sample>& track, int64_t time_ns) {
  const auto after = std::upper_bound(track.begin(), track.end(), time_ns,
                                      [](int64_t time, const Sample& sample) { return time < sample.time_ns; });
  if (after == track.begin()) return track.front().watts;
  if (after == track.end()) return track.back().watts;
  const Sample& before = *std::prev(after);
  const double part =
      static_cast<double>(time_ns - before.time_ns) / static_cast<double>(after->time_ns - before.time_ns);
  return before.watts + part * (after->watts - before.watts);
}

// Joules of one track in [start, end).
double energy(const std::vector<Sample>& track, int64_t start_ns, int64_t end_ns) {
  double joules = 0;
  Sample last{start_ns, watts_at(track, start_ns)};
  const auto add_until = [&](const Sample& next) {
    joules += (last.watts + next.watts) / 2 * static_cast<double>(next.time_ns - last.time_ns) / 1e9;
    last = next;
  };
  auto sample = std::upper_bound(track.begin(), track.end(), start_ns,
                                 [](int64_t time, const Sample& each) { return time < each.time_ns; });
  for (; sample != track.end() && sample->time_ns < end_ns; ++sample) add_until(*sample);
  add_until({end_ns, watts_at(track, end_ns)});
  return joules;
}

void add_energy(const Model& model, const Steps& steps, const std::vector<std::vector<Sample>>& tracks, double factor,
                Cost& cost) {
  const auto all = [&](int64_t start_ns, int64_t end_ns) {
    double joules = 0;
    for (const auto& track : tracks) joules += energy(track, start_ns, end_ns);
    return joules * factor;
  };
  if (steps.size() == 0) {
    const Interval span = counted_span(model);
    cost.energy_joules = all(span.start_ns, span.end_ns);
  } else {
    cost.energy_joules = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      const int64_t start_ns = steps.start_ns[i];
      cost.steps[i].energy_joules = all(start_ns, start_ns + steps.duration_ns[i]);
      cost.energy_joules += cost.steps[i].energy_joules;
    }
    cost.energy_per_step_joules = cost.energy_joules / static_cast<double>(steps.size());
  }
  if (cost.window_ns > 0)
    cost.mean_power_watts = cost.energy_joules / factor * 1e9 / static_cast<double>(cost.window_ns);
}

void add_money(const CostOptions& options, Cost& cost) {
  const int64_t step_ns = cost.true_step_ns != kNoNumber ? cost.true_step_ns : cost.median_step_ns;
  if (step_ns == kNoNumber) return;
  const auto samples = static_cast<double>(options.samples_per_step);
  const auto steps = static_cast<double>(options.steps_per_run);
  if (options.price_per_hour >= 0) {
    cost.price_per_step = options.price_per_hour * static_cast<double>(step_ns) / kNsPerHour;
    if (samples > 0) cost.price_per_1000_samples = cost.price_per_step / samples * 1000;
    if (steps > 0) cost.price_per_run = cost.price_per_step * steps;
  }
  if (cost.energy_per_step_joules < 0) return;
  if (samples > 0) cost.joules_per_sample = cost.energy_per_step_joules / samples;
  if (options.grams_per_kwh >= 0) {
    cost.grams_per_step = options.grams_per_kwh * cost.energy_per_step_joules / kJoulesPerKwh;
    if (steps > 0) cost.grams_per_run = cost.grams_per_step * steps;
  }
}

}  // namespace

Cost cost_of(const Model& model, const CostOptions& options) {
  Cost cost;
  const Steps steps = marked_or_found_steps(model);
  for (size_t i = 0; i < steps.size(); ++i) {
    cost.steps.push_back({.step = steps.number[i], .duration_ns = steps.duration_ns[i]});
    cost.window_ns += steps.duration_ns[i];
  }
  if (steps.size() == 0) {
    const Interval span = counted_span(model);
    cost.window_ns = span.end_ns - span.start_ns;
  }
  cost.median_step_ns = median(steps.duration_ns);
  cost.true_step_ns = find_step_times(model.timed_steps).true_step_ns;
  auto tracks = power_samples(model);
  for (const auto& track : tracks) cost.power_readings += static_cast<int64_t>(track.size());
  std::erase_if(tracks, [](const auto& track) { return track.size() < 2; });
  cost.power_tracks = static_cast<int64_t>(tracks.size());
  if (!tracks.empty()) add_energy(model, steps, tracks, options.overhead_factor, cost);
  add_money(options, cost);
  return cost;
}

}  // namespace firelane
