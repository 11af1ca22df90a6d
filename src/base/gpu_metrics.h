// GPU metrics whose values CUPTI gives in another unit than their names say.
//
// In a trace, values are as the name says: who takes them from CUPTI's sampler turns them (our recorder while it reads
// them, the reader of Kineto's traces, which hold what CUPTI gave).
#pragma once

#include <cstdint>
#include <string_view>

namespace firelane {

inline bool is_throughput_percent(std::string_view metric) {
  return metric.find("_throughput.") != std::string_view::npos &&
         metric.find(".pct_of_peak_") != std::string_view::npos;
}

// CUPTI 13.0 gives `dram__throughput.avg.pct_of_peak_sustained_elapsed` and its kind as fractions of 1 (an H200,
// 130001), and no other metric. `cupti_version`: cuptiGetVersion()'s; of 13.0 those with 1300 before the update.
inline double factor_to_percent(std::string_view metric, int64_t cupti_version) {
  return cupti_version / 100 == 1300 && is_throughput_percent(metric) ? 100 : 1;
}

// Metadata of a trace in which that was done: exports keep it, and who reads them again changes nothing.
inline constexpr std::string_view kThroughputsInPercent = "throughputs_in_percent";

}  // namespace firelane
