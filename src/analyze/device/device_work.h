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

}  // namespace firelane::analyze
