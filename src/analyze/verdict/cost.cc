#include "analyze/verdict/cost.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/device/device_work.h"
#include "analyze/steps/find_steps.h"
#include "analyze/verdict/study.h"

namespace firelane::analyze {

namespace {

constexpr double kNsPerHour = 3.6e12;
constexpr double kJoulesPerKwh = 3.6e6;

struct Sample {
  int64_t time_ns;
  double value;  // W, or J so far
};

// What one device says.
struct Track {
  std::vector<Sample> samples;
  bool counts_energy = false;
};

// The energy counter of a GPU moves ten or more times a second; between readings nearer than this it says little.
constexpr int64_t kShortestCountNs = 50'000'000;

bool holds(std::string_view text, std::string_view lower, std::string_view upper) {
  return text.find(lower) != std::string_view::npos || text.find(upper) != std::string_view::npos;
}

std::vector<std::vector<Sample>> samples_of(const Model& model) {
  std::vector<std::vector<Sample>> out(model.counter_tracks.size());
  for (size_t i = 0; i < model.counter_samples.size(); ++i) {
    out[model.counter_samples.track[i]].push_back({model.counter_samples.time_ns[i], model.counter_samples.value[i]});
  }
  return out;
}

bool is_energy(std::string_view name, const std::vector<Sample>& samples) {
  return name.ends_with("energy (J)") && samples.size() >= 2 && samples.back().value > samples.front().value &&
         samples.back().time_ns - samples.front().time_ns >= kShortestCountNs;
}

// "GPU 0 energy (J)" and "GPU 0 power (W)" are of one device: the counter knows better.
std::string_view device_of(std::string_view name) {
  return name.substr(0, name.find_last_of(' ', name.rfind('(') - 2));
}

std::vector<Track> energy_tracks(const Model& model, int64_t& readings) {
  const CounterTracks& tracks = model.counter_tracks;
  std::vector<std::vector<Sample>> samples = samples_of(model);
  std::vector<Track> out;
  std::set<std::string_view> known;
  for (size_t i = 0; i < tracks.size(); ++i) {
    const std::string_view name = model.text(tracks.name[i]);
    if (!is_energy(name, samples[i])) continue;
    known.insert(device_of(name));
    out.push_back({std::move(samples[i]), true});
    samples[i].clear();
  }
  for (size_t i = 0; i < tracks.size(); ++i) {
    const std::string_view name = model.text(tracks.name[i]);
    const std::string_view series = model.text(tracks.series[i]);
    if (!holds(name, "power", "Power") && !holds(series, "power", "Power")) continue;
    readings += static_cast<int64_t>(samples[i].size());
    if (samples[i].size() < 2) continue;
    if (name.ends_with("power (W)") && known.contains(device_of(name))) continue;
    const bool in_milliwatts = holds(name, "mW", "milliwatt") || holds(series, "mW", "milliwatt");
    for (Sample& sample : samples[i]) sample.value /= in_milliwatts ? 1e3 : 1;
    out.push_back({std::move(samples[i]), false});
  }
  return out;
}

// On the straight line between the samples around `time_ns`; outside of all, the nearest.
double value_at(const std::vector<Sample>& samples, int64_t time_ns) {
  const auto after = std::upper_bound(samples.begin(), samples.end(), time_ns,
                                      [](int64_t time, const Sample& sample) { return time < sample.time_ns; });
  if (after == samples.begin()) return samples.front().value;
  if (after == samples.end()) return samples.back().value;
  const Sample& before = *std::prev(after);
  const double part =
      static_cast<double>(time_ns - before.time_ns) / static_cast<double>(after->time_ns - before.time_ns);
  return before.value + part * (after->value - before.value);
}

double area(const std::vector<Sample>& samples, int64_t start_ns, int64_t end_ns) {
  double joules = 0;
  Sample last{start_ns, value_at(samples, start_ns)};
  const auto add_until = [&](const Sample& next) {
    joules += (last.value + next.value) / 2 * static_cast<double>(next.time_ns - last.time_ns) / 1e9;
    last = next;
  };
  auto sample = std::upper_bound(samples.begin(), samples.end(), start_ns,
                                 [](int64_t time, const Sample& each) { return time < each.time_ns; });
  for (; sample != samples.end() && sample->time_ns < end_ns; ++sample) add_until(*sample);
  add_until({end_ns, value_at(samples, end_ns)});
  return joules;
}

// What was counted up; before the first and after the last reading at the mean power between them.
double counted(const std::vector<Sample>& samples, int64_t start_ns, int64_t end_ns) {
  const Sample& first = samples.front();
  const Sample& last = samples.back();
  const double joules_per_ns = (last.value - first.value) / static_cast<double>(last.time_ns - first.time_ns);
  const int64_t inside_ns = std::max<int64_t>(0, std::min(end_ns, last.time_ns) - std::max(start_ns, first.time_ns));
  const double inside = value_at(samples, end_ns) - value_at(samples, start_ns);
  return inside + joules_per_ns * static_cast<double>(end_ns - start_ns - inside_ns);
}

// Joules of one track in [start, end).
double energy(const Track& track, int64_t start_ns, int64_t end_ns) {
  return track.counts_energy ? counted(track.samples, start_ns, end_ns) : area(track.samples, start_ns, end_ns);
}

void add_energy(const Model& model, const Steps& steps, const std::vector<Track>& tracks, double factor, Cost& cost) {
  const auto all = [&](int64_t start_ns, int64_t end_ns) {
    double joules = 0;
    for (const Track& track : tracks) joules += energy(track, start_ns, end_ns);
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
  if (cost.step_ns == kNoNumber) return;
  const auto samples = static_cast<double>(options.samples_per_step);
  const auto steps = static_cast<double>(options.steps_per_run);
  if (options.price_per_hour >= 0) {
    cost.price_per_step = options.price_per_hour * static_cast<double>(cost.step_ns) / kNsPerHour;
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

Cost cost_of(const StudiedTrace& trace, const CostOptions& options) {
  const Model& model = trace.model();
  Cost cost;
  const Steps steps = trace_steps(trace);
  for (size_t i = 0; i < steps.size(); ++i) {
    cost.steps.push_back({.step = steps.number[i], .duration_ns = steps.duration_ns[i]});
    cost.window_ns += steps.duration_ns[i];
  }
  if (steps.size() == 0) {
    const Interval span = counted_span(model);
    cost.window_ns = span.end_ns - span.start_ns;
  }
  if (steps.size() > 0) {
    const auto& verdict = trace.get<study>();
    cost.usual_ns = verdict.usual_step_ns;
    cost.usual_recorded_ns = verdict.usual_recorded_ns;
    cost.step_ns = verdict.mean_step_ns();
    cost.estimated = verdict.undone.source != CostSource::kBaseline;
  }
  const std::vector<Track> tracks = energy_tracks(model, cost.power_readings);
  cost.power_tracks = static_cast<int64_t>(tracks.size());
  if (!tracks.empty()) add_energy(model, steps, tracks, options.overhead_factor, cost);
  add_money(options, cost);
  return cost;
}

}  // namespace firelane::analyze
