#include "analyze/device/device_work.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace firelane::analyze {

bool is_counted(const Model& model, Row row) {
  const DeviceSlices& slices = model.device_slices;
  const int64_t end_ns = model.info.recorder.device_window.end_ns;
  if (slices.window[row] == WindowMark::kInside || end_ns == kNoNumber) return true;
  const Row launch = slices.launch[row];
  if (launch != kNoRow) return model.host_slices.start_ns[launch] < end_ns;
  // Launched before the recording, or after it; where no calls were recorded, nobody knows.
  return slices.start_ns[row] < end_ns || model.call_details.size() == 0;
}

Interval counted_part(const Model& model, Row row) {
  const DeviceSlices& slices = model.device_slices;
  Interval part{slices.start_ns[row], slices.end_ns(row)};
  const int64_t start_ns = model.info.recorder.device_window.start_ns;
  if (slices.window[row] != WindowMark::kInside && start_ns != kNoNumber) {
    part.start_ns = std::clamp(start_ns, part.start_ns, part.end_ns);
  }
  return part;
}

IntervalSet device_busy(const Model& model) {
  const DeviceSlices& slices = model.device_slices;
  std::vector<Interval> work;
  work.reserve(slices.size());
  for (Row row = 0; row < slices.size(); ++row) {
    if (is_device_work(slices.kind[row]) && is_counted(model, row)) work.push_back(counted_part(model, row));
  }
  return IntervalSet(std::move(work));
}

Interval counted_span(const Model& model) {
  const Interval all{0, model.info.duration_ns};
  if (model.losses[Stat::kDeviceSliceAcrossWindow] == 0) return all;
  Interval span{INT64_MAX, INT64_MIN};
  const auto cover = [&](const Interval& part) {
    span = {std::min(span.start_ns, part.start_ns), std::max(span.end_ns, part.end_ns)};
  };
  const HostSlices& host = model.host_slices;
  for (Row row = 0; row < host.size(); ++row) {
    const bool is_programs = host.kind[row] != HostKind::kSpan && host.kind[row] != HostKind::kOverhead;
    if (is_programs) cover({host.start_ns[row], host.end_ns(row)});
  }
  const DeviceSlices& device = model.device_slices;
  for (Row row = 0; row < device.size(); ++row) {
    if (is_device_work(device.kind[row]) && is_counted(model, row)) cover(counted_part(model, row));
  }
  return span.start_ns > span.end_ns ? all : span;
}

}  // namespace firelane::analyze
