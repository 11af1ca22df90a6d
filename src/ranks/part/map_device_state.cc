// Keeps what says why kernels are slow on one machine only: clocks, power and temperature of its device.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "ranks/part/map_pieces.h"

namespace firelane::ranks {

namespace {

// The device that has most of the trace's kernels: a process may see others.
int64_t main_device(const Model& model) {
  std::map<int64_t, size_t> counts;
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    if (model.device_slices.kind[row] == DeviceKind::kKernel) ++counts[model.device_slices.device[row]];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? -1 : most->first;
}

int64_t whole_median(std::vector<double>& values) {
  if (values.empty()) return -1;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return std::isfinite(*middle) && *middle >= 0 && *middle < 1e9 ? std::llround(*middle) : -1;
}

}  // namespace

void map_device_state(const Model& model, Part& part) {
  if (model.counter_samples.size() == 0 || !part.has_device_work) return;
  struct Wanted {
    std::string name;
    int64_t* to;
    std::vector<double> values;
  };
  const std::string device = "GPU " + std::to_string(main_device(model)) + " ";
  PartDeviceState& state = part.device_state;
  Wanted wanted[] = {{device + "SM clock (MHz)", &state.sm_clock_mhz, {}},
                     {device + "memory clock (MHz)", &state.memory_clock_mhz, {}},
                     {device + "power (W)", &state.power_watts, {}},
                     {device + "temperature (C)", &state.temperature_celsius, {}}};
  std::vector<Wanted*> of_track(model.counter_tracks.size(), nullptr);
  for (Row track = 0; track < model.counter_tracks.size(); ++track) {
    for (Wanted& each : wanted) {
      if (model.text(model.counter_tracks.name[track]) == each.name) of_track[track] = &each;
    }
  }
  // While steps ran; without steps, all of the recording.
  const PartSteps& steps = part.steps;
  const int64_t begin = steps.size() == 0 ? INT64_MIN : steps.start_ns.front();
  const int64_t end = steps.size() == 0 ? INT64_MAX : steps.end_ns.back();
  for (Row row = 0; row < model.counter_samples.size(); ++row) {
    Wanted* const to = of_track[model.counter_samples.track[row]];
    const int64_t at = model.counter_samples.time_ns[row];
    if (to != nullptr && at >= begin && at <= end) to->values.push_back(model.counter_samples.value[row]);
  }
  for (Wanted& each : wanted) *each.to = whole_median(each.values);
}

}  // namespace firelane::ranks
