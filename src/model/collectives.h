// Collectives as c10d names them ("nccl:all_reduce", "gloo:broadcast"), and the ranks that take part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/values.h"

namespace firelane {

struct CollectiveName {
  CommBackend backend = CommBackend::kUnknown;  // kUnknown: this is no collective
  std::string_view collective;                  // "all_reduce"
};

// For the range that c10d opens around a collective's launch, or around its work on the host; also a flight recorder's
// profiling_name.
CollectiveName collective_named(std::string_view range_name);

// "completed" of a flight recorder's dump.
CommState comm_state_named(std::string_view state);

// "0-7,16-23" for ranks in rising order.
std::string short_rank_list(const std::vector<int64_t>& ranks);

}  // namespace firelane
