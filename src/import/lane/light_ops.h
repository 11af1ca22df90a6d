// Gives the device work of light steps its ops: a training program launches the same sequence in every step, so the
// place of a launch in a light step says which launch of a full step it is.
//
// Launches are compared by kernel name, grid and threads (memcpys and memsets: name and bytes), in the order in which
// the host made them; where two steps differ, by the fewest insertions and deletions (align.h), then by name alone
// (shapes that depend on the data). The slices around the twin in the full step (ops with their inputs, modules, Python
// functions) are laid around the light launch, from the first to the last launch that they have in common: their times
// in a light step are those of launches, not of the whole op. What has no twin stays without op, and is counted.
#pragma once

#include "model/raw.h"

namespace firelane::importer {

// REQUIRES: `light` and `full` are parts of one file (light_rows.h). Fills light.info.light.
void add_light_ops(RawTrace& light, const Model& full);

}  // namespace firelane::importer
