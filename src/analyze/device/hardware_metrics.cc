#include "analyze/device/hardware_metrics.h"

#include <algorithm>
#include <cmath>

#include "model/gpu_counters.h"

namespace firelane::analyze {

namespace {

constexpr std::string_view kPercentOfPeak = ".pct_of_peak_sustained_elapsed";

struct KnownName {
  std::string_view begin;  // of CUPTI's name, or Nsight Systems' whole one
  UnitName unit;
};
constexpr KnownName kUnitNames[] = {
    {"sm__cycles_active.", {HardwareUnit::kSm}},
    {"sm__inst_executed_pipe_tensor.", {HardwareUnit::kTensor}},
    {"sm__inst_executed_pipe_tensor_realtime.", {HardwareUnit::kTensor}},
    {"sm__pipe_tensor_cycles_active.", {HardwareUnit::kTensor}},
    {"sm__pipe_tensor_cycles_active_realtime.", {HardwareUnit::kTensor}},
    {"dram__bytes.", {HardwareUnit::kDram}},
    {"dram__bytes_read.", {HardwareUnit::kDram, UnitPart::kRead}},
    {"dram__bytes_write.", {HardwareUnit::kDram, UnitPart::kWrite}},
    {"dram__throughput.", {HardwareUnit::kDram}},
    {"dramc__throughput.", {HardwareUnit::kDram}},
    {"gpu__dram_throughput.", {HardwareUnit::kDram}},
    {"dram__read_throughput.", {HardwareUnit::kDram, UnitPart::kRead}},
    {"dram__write_throughput.", {HardwareUnit::kDram, UnitPart::kWrite}},
    {"dramc__read_throughput.", {HardwareUnit::kDram, UnitPart::kRead}},
    {"dramc__write_throughput.", {HardwareUnit::kDram, UnitPart::kWrite}},
};
constexpr KnownName kNsightUnitNames[] = {
    {"SM Active [Throughput %]", {HardwareUnit::kSm}},
    {"SMs Active [Throughput %]", {HardwareUnit::kSm}},
    {"Tensor Active [Throughput %]", {HardwareUnit::kTensor}},
    {"DRAM Read Bandwidth [Throughput %]", {HardwareUnit::kDram, UnitPart::kRead}},
    {"DRAM Write Bandwidth [Throughput %]", {HardwareUnit::kDram, UnitPart::kWrite}},
};

// Samples further apart than this many usual intervals have a pause between them.
constexpr int64_t kLongestGap = 2;

// What was counted at one time; -1: not.
struct Counted {
  std::array<std::array<double, kUnitPartCount>, kHardwareUnitCount> percents;
  Counted() {
    for (auto& parts : percents) parts.fill(-1);
  }
  double& of(UnitName name) { return percents[static_cast<size_t>(name.unit)][static_cast<size_t>(name.part)]; }
  // Never above the peak, whatever rounding adds to a sum.
  std::array<double, kHardwareUnitCount> percent() const {
    std::array<double, kHardwareUnitCount> out{};
    for (size_t unit = 0; unit < kHardwareUnitCount; ++unit) {
      const auto [whole, read, write] = percents[unit];
      out[unit] = std::min(100.0, whole >= 0 ? whole : read >= 0 && write >= 0 ? read + write : -1);
    }
    return out;
  }
};

int64_t usual_interval(const std::vector<int64_t>& times) {
  std::vector<int64_t> gaps;
  for (size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  if (gaps.empty()) return 0;
  const auto middle = gaps.begin() + static_cast<ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle;
}

}  // namespace

std::optional<UnitName> unit_of(std::string_view counter) {
  if (counter.ends_with(kPercentOfPeak)) {
    for (const KnownName& known : kUnitNames) {
      if (counter.starts_with(known.begin)) return known.unit;
    }
  }
  for (const KnownName& known : kNsightUnitNames) {
    if (counter == known.begin) return known.unit;
  }
  return std::nullopt;
}

int32_t device_of_track(const Model& model, Row track) {
  const TraceId pid = model.counter_tracks.pid[track];
  if (pid.text == kNoString) return model.info.origin == Origin::kNsight ? static_cast<int32_t>(pid.number) : -1;
  return device_of_gpu_counters(model.text(pid.text));
}

HardwareMetrics::HardwareMetrics(const Model& model) {
  struct Track {
    int32_t device = -1;
    std::optional<UnitName> unit;
  };
  std::vector<Track> tracks;
  for (Row i = 0; i < model.counter_tracks.size(); ++i) {
    const std::optional<UnitName> unit = unit_of(model.text(model.counter_tracks.name[i]));
    tracks.push_back({unit ? device_of_track(model, i) : -1, unit});
  }
  // Counters of a sample have the same time.
  std::map<int32_t, std::map<int64_t, Counted>> by_time;
  for (Row i = 0; i < model.counter_samples.size(); ++i) {
    const Track& track = tracks[model.counter_samples.track[i]];
    const double value = model.counter_samples.value[i];
    if (track.device < 0 || !track.unit || !std::isfinite(value) || value < 0) continue;
    double& counted = by_time[track.device][model.counter_samples.time_ns[i]].of(*track.unit);
    counted = std::max(counted, value);
  }
  for (auto& [device, samples] : by_time) {
    std::vector<int64_t> times;
    for (const auto& [time_ns, counted] : samples) times.push_back(time_ns);
    const int64_t interval = usual_interval(times);
    if (interval <= 0) continue;
    std::vector<Sample>& out = devices_[device];
    size_t i = 0;
    for (const auto& [time_ns, counted] : samples) {
      const int64_t next = i + 1 < times.size() ? times[i + 1] : time_ns + interval;
      out.push_back({.when = {time_ns, next - time_ns > kLongestGap * interval ? time_ns + interval : next},
                     .percent = counted.percent()});
      ++i;
    }
  }
}

UnitUse HardwareMetrics::use_while(const IntervalSet& busy) const {
  UnitUse out;
  std::array<double, kHardwareUnitCount> used{};  // percent x ns
  std::array<int64_t, kHardwareUnitCount> busy_ns{};
  for (const auto& [device, samples] : devices_) {
    for (const Sample& sample : samples) {
      const int64_t inside = busy.covered_ns(sample.when.start_ns, sample.when.end_ns);
      out.sampled_ns += inside;
      for (size_t unit = 0; unit < kHardwareUnitCount; ++unit) {
        if (inside == 0 || sample.percent[unit] < 0) continue;
        used[unit] += sample.percent[unit] * static_cast<double>(sample.when.end_ns - sample.when.start_ns);
        busy_ns[unit] += inside;
      }
    }
  }
  if (out.sampled_ns * 2 < busy.total_ns() || out.sampled_ns == 0) return {};
  for (size_t unit = 0; unit < kHardwareUnitCount; ++unit) {
    if (busy_ns[unit] > 0) out.percent[unit] = std::min(100.0, used[unit] / static_cast<double>(busy_ns[unit]));
  }
  return out;
}

}  // namespace firelane::analyze
