// What hardware counters measured: how busy a GPU's SMs, tensor cores and memory were in a stretch of time.
//
// Sampled by firelane's recorder, torch.profiler (PerformanceMetricsConfig) and Nsight Systems (--gpu-metrics-devices)
// as counters of the trace. A sample is the mean from its time to the next one's; its percent is of what the hardware
// can do.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "analyze/common/intervals.h"
#include "model/model.h"

namespace firelane::analyze {

enum class HardwareUnit : uint8_t { kSm, kTensor, kDram };
inline constexpr size_t kHardwareUnitCount = 3;

// Percent of the peak; -1: not measured.
struct UnitUse {
  std::array<double, kHardwareUnitCount> percent = {-1, -1, -1};
  int64_t sampled_ns = 0;  // by the samples behind it

  double of(HardwareUnit unit) const { return percent[static_cast<size_t>(unit)]; }
  bool is_known() const { return sampled_ns > 0; }
};

// At least this much of a peak: the unit is what limits. As Nsight Compute's "Speed of Light".
inline constexpr double kUsedUpPercent = 60;

class HardwareMetrics {
 public:
  struct Sample {
    Interval when;
    std::array<double, kHardwareUnitCount> percent = {-1, -1, -1};
  };
  explicit HardwareMetrics(const Model& model);

  // By device, in order of time.
  const std::map<int32_t, std::vector<Sample>>& devices() const { return devices_; }
  // What the units did while `busy`, in percent of what they could have done then: idle moments are left out. Of all
  // devices together. Not known where samples cover less than half of it.
  UnitUse use_while(const IntervalSet& busy) const;

 private:
  std::map<int32_t, std::vector<Sample>> devices_;
};

// What a counter of that name measures, as far as one of the units above; nothing for others. DRAM's reads and writes
// are two counters, each in percent of the bandwidth of both: where the whole is not counted, it is their sum, and one
// of them alone says nothing of it.
enum class UnitPart : uint8_t { kWhole, kRead, kWrite };
inline constexpr size_t kUnitPartCount = 3;
struct UnitName {
  HardwareUnit unit{};
  UnitPart part = UnitPart::kWhole;
};
std::optional<UnitName> unit_of(std::string_view counter);

// The GPU of a counter's track; -1: not a GPU's.
int32_t device_of_track(const Model& model, Row track);

}  // namespace firelane::analyze
