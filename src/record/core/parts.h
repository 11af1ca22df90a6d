// What a recording may leave out: torch.profiler's activity types, as far as they have a hook of their own.
#pragma once

namespace firelane::record {

#define FL_PARTS(X) X(ops) X(ranges) X(kernels) X(copies) X(memsets) X(calls) X(overhead)

struct Parts {
#define FL_FIELD(name) bool name = true;
  FL_PARTS(FL_FIELD)
#undef FL_FIELD
};

}  // namespace firelane::record
