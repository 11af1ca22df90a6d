// The program's own work on the CPU: operators that compute there for a device, and code between operators.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/host/dispatch.h"
#include "analyze/steps/phases.h"
#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::advise {

// Operators in a row that compute on the CPU for a device program: from the copy of what they need from the device, if
// there is one, up to the copy of what they made.
struct HostWork {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t computing_ns = 0;
  Row longest = kNoRow;
  std::vector<Row> ops;
  std::vector<Row> fetches;  // operators right before it that copied from the device
  std::vector<Row> copies;   // operators that copied to the device
  std::vector<analyze::Interval>
      giving_back;  // later: large memory that was asked for here is freed, between operators
  LaneId lane{};
  bool holds(int64_t time_ns) const { return time_ns >= start_ns && time_ns < end_ns; }
};

// On the leading thread in the analyzed steps, in order of time; none without a device. Loading of batches is left out.
std::vector<HostWork> host_work(const StudiedTrace& trace);

// What happens in an optimizer, but not in a closure that it was given, with a forward and a backward pass.
class OptimizerCode {
 public:
  explicit OptimizerCode(const Model& model);
  bool holds(const analyze::HostSegment& segment) const;

 private:
  const Model& model_;
  analyze::OptimizerSteps optimizers_;
  bool has_any_ = false;
};

// Stretches of the leading thread in the judged steps without any operator that are too long to be the way to the next
// one: ten times the usual way, 100 us to 1 ms. What optimizers do in Python for each parameter is none of them, nor is
// the way into a backward pass, unless that takes a millisecond.
std::vector<analyze::CodeStretch> code_stretches(const StudiedTrace& trace);

}  // namespace firelane::advise
