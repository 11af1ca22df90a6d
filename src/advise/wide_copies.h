// Copies to the device of data that is wider than necessary: bytes that were converted to float on the host, or doubles
// that are converted to float on the device right afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::advise {

struct WideCopy {
  Row copy = kNoRow;     // of device_slices
  Row op = kNoRow;       // aten::copy_ that changes the type
  bool on_host = false;  // before the copy; else on the device, after it
  int64_t bytes = 0;     // of the copy
  double keep = 1;       // of them, in the narrower type
};

// For the analyzed steps, in order of the copies' launches.
std::vector<WideCopy> wide_copies(const StudiedTrace& trace);

}  // namespace firelane::advise
