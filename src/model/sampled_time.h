// Which time a row of stack_samples stands for: one rule for whoever cuts or adds samples.
#pragma once

#include <algorithm>
#include <cstdint>

namespace firelane {

struct SampledTime {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// A look at a thread on a core stands for the time before it. A thread that waits in one place is one row from the
// first look on, however many follow; so is one of which it is not known whether it waits.
inline bool begins_at_its_look(int32_t on_cpu) { return on_cpu <= 0; }

inline SampledTime sampled_time(int64_t time_ns, int64_t weight_ns, int32_t on_cpu) {
  // Hostile files have times at the end of the numbers.
  const int64_t weight = std::clamp<int64_t>(weight_ns, 0, INT64_MAX / 2);
  const int64_t at = std::clamp(time_ns, INT64_MIN / 2, INT64_MAX / 2);
  return begins_at_its_look(on_cpu) ? SampledTime{at, at + weight} : SampledTime{at - weight, at};
}

}  // namespace firelane
