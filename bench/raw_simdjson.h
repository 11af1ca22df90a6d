// simdjson alone: the floor for anything that reads JSON on one thread.
#pragma once

#include <cstdint>
#include <string>

namespace firelane::bench {

struct Iteration {
  double seconds = 0;
  uint64_t events = 0;
};

// On-demand over all events, touching name, cat, ts and dur. The copy into padded memory is not timed.
Iteration iterate_with_simdjson(const std::string& content);

}  // namespace firelane::bench
