// What counts as work of a device: kernels, copies, sets and collectives. Synchronisation
// records, event records and annotations on a stream are not work: they mark or wait.
#pragma once

#include <vector>

#include "analyze/intervals.h"
#include "model/model.h"

namespace firelane {

inline bool is_device_work(DeviceKind kind) {
  return kind == DeviceKind::kKernel || kind == DeviceKind::kCopy || kind == DeviceKind::kSet ||
         kind == DeviceKind::kCollective;
}

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
