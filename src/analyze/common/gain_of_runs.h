// What a change gained, from runs without and with it: the difference of the means, with a range, and whether it is
// more than noise.
//
// The run is the unit: steps of one process share its luck. The range is Student's, for 95%, with the spread of both
// sides pooled; with one run a side there is none.
#pragma once

#include <cstdint>
#include <vector>

namespace firelane::analyze {

struct RunGain {
  double before_ns = 0;  // means of the runs
  double after_ns = 0;
  double saved_ns = 0;
  bool has_range = false;
  double low_ns = 0;
  double high_ns = 0;

  // REQUIRES of the answer: has_range. Faster, and not by chance.
  bool is_gain() const { return has_range && low_ns > 0; }
  bool is_loss() const { return has_range && high_ns < 0; }
};

// Steps' times, one a run. REQUIRES: neither is empty.
RunGain gain_of_runs(const std::vector<int64_t>& before_ns, const std::vector<int64_t>& after_ns);

}  // namespace firelane::analyze
