// Device work across the edges of a recording: what ran already when it began, and what still ran, or began, after
// stop().
#include "model/assemble.h"

namespace firelane {

void mark_window(Model& model) {
  const RecorderInfo::DeviceWindow& window = model.info.recorder.device_window;
  if (window.start_ns == kNoNumber && window.end_ns == kNoNumber) return;
  DeviceSlices& slices = model.device_slices;
  for (Row row = 0; row < slices.size(); ++row) {
    if (!is_launched(slices.kind[row])) continue;
    const bool is_early = slices.start_ns[row] < window.start_ns;  // of no row, where it is kNoNumber
    const bool is_late = window.end_ns != kNoNumber && slices.end_ns(row) > window.end_ns;
    if (!is_early && !is_late) continue;
    slices.window[row] = is_early && is_late ? WindowMark::kBoth
                         : is_early          ? WindowMark::kBeganBefore
                                             : WindowMark::kEndsAfter;
    ++model.losses[Stat::kDeviceSliceAcrossWindow];
  }
}

}  // namespace firelane
