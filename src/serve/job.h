// What is asked of a job of many ranks: /api/ranks/NAME. Answers come from the parts, which are in memory; a rank's
// trace is loaded only when the page asks for it by its number. Sizes are bounded by what a screen shows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ranks/reduce/studied_job.h"
#include "serve/answer.h"
#include "serve/request.h"

namespace firelane::serve {

struct ServedJob {
  std::shared_ptr<const ranks::StudiedJob> job;
  std::vector<int64_t> trace_of_rank;  // by rank (index): its number in the set of traces; -1: its trace is not here
  double price_per_hour = -1;
};

// REQUIRES: a path of three parts: "api", "ranks", NAME.
Answer about_job(const ServedJob& served, const Request& request);

}  // namespace firelane::serve
