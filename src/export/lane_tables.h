// Tables of a converted trace that a Chrome trace has no form for: the caching allocator's, and allocations with their
// stacks where they do not come from one.
#pragma once

#include "format/chunk.h"
#include "model/model.h"

namespace firelane::exporter {

// Whether memory events are among them.
bool memory_is_a_table(const Model& model);

// The writer's error; "" = none.
std::string write_lane_tables(const Model& model, format::ChunkWriter& writer);

}  // namespace firelane::exporter
