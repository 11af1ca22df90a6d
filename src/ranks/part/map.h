// One trace becomes one part: the map of `firelane ranks`. A pure function of a studied trace.
#pragma once

#include "ranks/part/part.h"
#include "traces/studied_trace.h"

namespace firelane::ranks {

Part map_trace(const StudiedTrace& trace);

// The slices of a part's collectives, row by row, in the trace that it was made from.
std::vector<SliceRef> collective_slices(const StudiedTrace& trace);

}  // namespace firelane::ranks
