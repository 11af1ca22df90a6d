// Which rank of how many a trace is, and the process groups it belongs to.
//
// Three keys say so: torch.profiler's `distributedInfo`, which our recorder writes in the same form; `launch`, what the
// launcher's environment variables told our recorder, for programs that never initialize torch.distributed; and
// `group_sequences`, how many collectives each group had begun when our recording began.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::importer {

// True when `key` is one of those; `json` that does not parse changes nothing.
bool read_distributed(std::string_view key, std::string_view json, DistributedInfo& out);

// After all keys were read.
void finish_distributed(DistributedInfo& out);

// "[0, 1, 5]", also where a list was cut ("[0, ..., 63]"): the ranks that are there, and whether some are missing.
struct RankList {
  std::vector<int64_t> ranks;
  bool is_cut = false;
};
RankList parse_ranks(std::string_view text);

}  // namespace firelane::importer
