// Operators that compute on the CPU in a program for a device.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::advise {

// Operators in a row that compute on the CPU for a device program, up to the copy of what they made.
struct HostWork {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t computing_ns = 0;
  Row longest = kNoRow;
  std::vector<Row> ops;
  std::vector<Row> copies;  // operators that copied to the device
  LaneId lane{};
};

// Of the leading thread in the judged steps, in order of time; none without a device. Loading of batches is left out.
std::vector<HostWork> host_work(const StudiedTrace& trace);

}  // namespace firelane::advise
