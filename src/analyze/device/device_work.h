// When devices worked, and what of it counts.
//
// A recording has edges. Of a kernel that ran already when it began, the time from then on counts: what ran beside it
// before was not recorded. Work that the recorded program launched counts whole, also what ran after stop() was called,
// which waited for it. What other threads launched after that does not count.
#pragma once

#include <cstdint>

#include "analyze/common/intervals.h"
#include "model/model.h"

namespace firelane::analyze {

// Whether a piece of device work is of the recording.
bool is_counted(const Model& model, Row row);
// What of it counts. REQUIRES: is_counted(model, row).
Interval counted_part(const Model& model, Row row);
inline int64_t counted_ns(const Model& model, Row row) {
  const Interval part = counted_part(model, row);
  return part.end_ns - part.start_ns;
}

// The moments in which any stream of any device worked.
IntervalSet device_busy(const Model& model);

// From the first to the last of all that counts.
Interval counted_span(const Model& model);

// When the call that launched a piece of work began; kNoNumber when the trace does not say.
inline int64_t launch_start(const Model& model, Row device_row) {
  const Row launch = model.device_slices.launch[device_row];
  return launch == kNoRow ? kNoNumber : model.host_slices.start_ns[launch];
}

// Visits the device work of each stream in order: fn(row, row before or kNoRow).
template <typename Fn>
void each_in_stream(const Model& model, const Fn& fn) {
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    Row before = kNoRow;
    for (Row row = model.lanes.device_begin[lane]; row < model.lanes.device_end[lane]; ++row) {
      if (!is_device_work(model.device_slices.kind[row])) continue;
      fn(row, before);
      before = row;
    }
  }
}

// Where streams take up the work that was launched in [begin, end): fn(row, row before or kNoRow), the row before being
// older work. Work whose launch is not known is older only while nothing launched since `begin` ran before it.
template <typename Fn>
void each_stream_start(const Model& model, int64_t begin_ns, int64_t end_ns, const Fn& fn) {
  bool has_begun = false;
  each_in_stream(model, [&](Row row, Row before) {
    if (before == kNoRow) has_begun = false;  // another stream
    const int64_t launched = launch_start(model, row);
    if (launched == kNoNumber || launched < begin_ns || launched >= end_ns) return;
    const int64_t before_launched = before == kNoRow ? kNoNumber : launch_start(model, before);
    const bool is_start = before_launched == kNoNumber ? !has_begun : before_launched < begin_ns;
    has_begun = true;
    if (is_start) fn(row, before);
  });
}

}  // namespace firelane::analyze
