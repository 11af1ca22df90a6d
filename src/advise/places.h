// Source lines: those behind a finding, and those that take most of a step. Both are empty if the trace does not say
// which line called its operators.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "advise/finding.h"
#include "traces/studied_trace.h"

namespace firelane::advise {

// The lines that take most of what is behind the finding, largest first.
std::vector<Place> places_of(const StudiedTrace& trace, const Finding& finding);

struct LargestLines {
  bool on_device = false;  // shares are of the device's time; else of the step on the host
  std::vector<Place> lines;
};
LargestLines largest_lines(const StudiedTrace& trace);

// "model.py(41): forward", "einops.py(97): reduce, from model.py(41): forward": without folders.
std::string place_name(const Place& place);

}  // namespace firelane::advise
