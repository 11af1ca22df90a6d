// What steps lost to other programs: time in which the thread that trains was ready to run, and all cores were taken.
//
// Our recorder notes that time of every step, recorded or not (TimedSteps::waited_ns). Some of it may be the program's
// own doing: its workers and its threads wait for the same cores. So only the part of the others counts (by how many
// cores they kept busy, and how many the program did beside this thread), and of that what goes beyond what steps
// usually wait: what every step pays is no chance, and the program does take that long on this machine.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

class CoreWaits {
 public:
  explicit CoreWaits(const Model& model);

  // For a row of timed_steps; 0 if unknown.
  int64_t lost_ns(Row timed) const { return timed < lost_.size() ? lost_[timed] : 0; }
  // For the step that began then on the host; 0 if it was not timed.
  int64_t lost_in(int64_t start_ns, int64_t end_ns) const;

  bool is_known() const { return known_ > 0; }
  // Share of the time of all timed steps spent waiting for a core that others used, 0..1.
  double waited_share() const { return waited_share_; }

 private:
  const TimedSteps& timed_;
  std::vector<int64_t> lost_;  // by row of timed_steps
  double by_others_ = 0;
  int64_t known_ = 0;
  double waited_share_ = 0;
};

}  // namespace firelane::analyze
