// What c10d calls the collectives of its backends: "nccl:all_reduce", "gloo:broadcast".
#pragma once

#include <string_view>

#include "model/values.h"

namespace firelane {

struct CollectiveName {
  CommBackend backend = CommBackend::kUnknown;  // kUnknown: this is no collective
  std::string_view collective;                  // "all_reduce"
};

// Of the range that c10d opens around a collective's launch, or around its work on the host; also a flight recorder's
// profiling_name.
CollectiveName collective_named(std::string_view range_name);

}  // namespace firelane
