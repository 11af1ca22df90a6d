// When devices worked.
#pragma once

#include <vector>

#include "analyze/intervals.h"
#include "model/model.h"

namespace firelane {

// The moments in which any stream of any device worked.
inline IntervalSet device_busy(const Model& model) {
  const DeviceSlices& slices = model.device_slices;
  std::vector<Interval> work;
  work.reserve(slices.size());
  for (Row row = 0; row < slices.size(); ++row) {
    if (is_device_work(slices.kind[row])) work.push_back({slices.start_ns[row], slices.end_ns(row)});
  }
  return IntervalSet(std::move(work));
}

}  // namespace firelane
