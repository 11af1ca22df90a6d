#include "analyze/compute/measured_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "analyze/device/device_work.h"

namespace firelane::analyze {

namespace {

// Share of a sample's time that one op needs for it to count: the rest changes its value by a tenth at most.
constexpr double kAlone = 0.9;
// DRAM below this half of "used up" contradicts an estimate by shapes: the data came from a cache.
constexpr double kNotMemoryPercent = kUsedUpPercent / 2;

using UnitSample = HardwareMetrics::Sample;

// The row whose work fills each sample; kNoRow: none does.
std::vector<uint32_t> rows_of_samples(const Model& model, const Roofline& roofline, int32_t device,
                                      const std::vector<UnitSample>& samples) {
  std::vector<std::vector<std::pair<uint32_t, int64_t>>> parts(samples.size());  // row and ns
  const DeviceSlices& slices = model.device_slices;
  for (Row row = 0; row < slices.size(); ++row) {
    if (slices.device[row] != device || roofline.row_of_work[row] == kNoRow || !is_counted(model, row)) continue;
    const int64_t begin = slices.start_ns[row];
    const int64_t end = slices.end_ns(row);
    auto at = std::upper_bound(samples.begin(), samples.end(), begin,
                               [](int64_t time, const UnitSample& sample) { return time < sample.when.end_ns; });
    for (; at != samples.end() && at->when.start_ns < end; ++at) {
      auto& of_sample = parts[static_cast<size_t>(at - samples.begin())];
      const int64_t ns = std::min(at->when.end_ns, end) - std::max(at->when.start_ns, begin);
      const auto same = std::ranges::find(of_sample, roofline.row_of_work[row], &std::pair<uint32_t, int64_t>::first);
      if (same == of_sample.end()) {
        of_sample.emplace_back(roofline.row_of_work[row], ns);
      } else {
        same->second += ns;
      }
    }
  }
  std::vector<uint32_t> out(samples.size(), kNoRow);
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto length = static_cast<double>(samples[i].when.end_ns - samples[i].when.start_ns);
    for (const auto& [row, ns] : parts[i]) {
      if (static_cast<double>(ns) >= kAlone * length) out[i] = row;
    }
  }
  return out;
}

void decide(RooflineRow& row) {
  const double dram = row.use.of(HardwareUnit::kDram);
  const double tensor = row.use.of(HardwareUnit::kTensor);
  if (dram >= kUsedUpPercent && dram >= tensor) {
    row.bound = KernelBound::kMemory;
    row.is_measured = true;
  } else if (tensor >= kUsedUpPercent) {
    row.bound = KernelBound::kCompute;
    row.is_measured = true;
  } else if (row.bound == KernelBound::kMemory && dram >= 0 && dram < kNotMemoryPercent) {
    row.bound = KernelBound::kUnknown;
  }
}

}  // namespace

void measure_rows(const Model& model, Roofline& roofline) {
  const HardwareMetrics metrics(model);
  std::vector<std::array<double, kHardwareUnitCount>> sums(roofline.rows.size());  // percent x ns
  std::vector<std::array<int64_t, kHardwareUnitCount>> times(roofline.rows.size());
  for (const auto& [device, samples] : metrics.devices()) {
    const std::vector<uint32_t> rows = rows_of_samples(model, roofline, device, samples);
    for (size_t i = 0; i < samples.size(); ++i) {
      if (rows[i] == kNoRow) continue;
      const int64_t ns = samples[i].when.end_ns - samples[i].when.start_ns;
      roofline.rows[rows[i]].use.sampled_ns += ns;
      for (size_t unit = 0; unit < kHardwareUnitCount; ++unit) {
        if (samples[i].percent[unit] < 0) continue;
        sums[rows[i]][unit] += samples[i].percent[unit] * static_cast<double>(ns);
        times[rows[i]][unit] += ns;
      }
    }
  }
  for (size_t i = 0; i < roofline.rows.size(); ++i) {
    RooflineRow& row = roofline.rows[i];
    for (size_t unit = 0; unit < kHardwareUnitCount; ++unit) {
      if (times[i][unit] > 0) row.use.percent[unit] = sums[i][unit] / static_cast<double>(times[i][unit]);
    }
    if (row.use.is_known()) decide(row);
  }
}

}  // namespace firelane::analyze
