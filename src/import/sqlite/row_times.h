// Start and end of a row, in nanoseconds, within the bounds that readers keep.
#pragma once

#include "import/sqlite/database.h"
#include "model/raw.h"

namespace firelane::importer {

inline bool is_time(int64_t ns) { return ns != kNoNumber && ns >= kMinTimeNs && ns <= kMaxTimeNs; }

// False, and counted, when the row has no place in time. An end before the start is an instant.
inline bool read_times(const SqlRow& row, int start_column, int end_column, LossCounts& losses, int64_t& start_ns,
                       int64_t& duration_ns) {
  start_ns = row.integer(start_column);
  const int64_t end_ns = row.integer(end_column);
  if (start_ns == kNoNumber) {
    ++losses[row.is_null(start_column) ? Stat::kEventWithoutTime : Stat::kValueOfWrongType];
    return false;
  }
  if (!is_time(start_ns)) {
    ++losses[Stat::kTimeOutOfRange];
    return false;
  }
  duration_ns = 0;
  if (!is_time(end_ns)) {
    ++losses[Stat::kDurationMissing];
  } else if (end_ns < start_ns) {
    ++losses[Stat::kDurationOutOfRange];
  } else {
    duration_ns = end_ns - start_ns;
  }
  return true;
}

}  // namespace firelane::importer
