// What limits an operator, a phase or an annotation: by its host time against the device time that it launches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/verdict/bound.h"
#include "traces/studied_trace.h"

namespace firelane::analyze {

struct GroupBound {  // an operator, a phase or an annotation
  std::string name;
  int64_t calls = 0;
  int64_t host_ns = 0;     // time on its thread, waiting for the device left out
  int64_t device_ns = 0;   // of the work it launched, each moment of each stream
  int64_t compute_ns = 0;  // of it, limited by computing
  int64_t ops = 0;         // operators, nested ones too, where there is no device; else 0
  Limit limit = Limit::kUnknown;
};

// In the window, most time (the larger of host and device) first: outermost operators by name, forward, backward,
// optimizer, data and transfer (analyze/steps/phases.h), outermost annotations by name.
std::vector<GroupBound> operator_bounds(const StudiedTrace& trace);
std::vector<GroupBound> phase_bounds(const StudiedTrace& trace);
std::vector<GroupBound> annotation_bounds(const StudiedTrace& trace);

}  // namespace firelane::analyze
