// Light steps of a .lane file: recorded without ops, so that they run almost as if nobody recorded them.
//
// They lie in the same file as full steps, but numbers of the two must not be mixed: a table of ops would count kernels
// of steps whose ops are not there. So the rows of light steps become a trace of their own, which is opened as
// "run.lane@light" and gets its ops from the full steps (light_ops.h). A file that has light steps only is not split.
#pragma once

#include <cstdint>
#include <vector>

#include "model/raw.h"

namespace firelane::importer {

struct LightWindow {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // INT64_MAX: until the end
};

// Moves what the program did in `windows`, and the device work that it launched there, into raw.light.
// REQUIRES: rows have their final times; windows are in order and do not overlap; one pool and one part.
void split_light(RawTrace& raw, const std::vector<LightWindow>& windows);

}  // namespace firelane::importer
