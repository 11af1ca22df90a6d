// Time per step: how long, and how much of it the devices were busy.
//
// A step's window is its host slice (ProfilerStep#N); in a trace without, steps are found by optimizer steps or by
// repetition (analyze/steps/find_steps.h). Device work counts where it runs, not
// where it was launched: a kernel of step 3 that runs into the window of step 4 is busy time
// of step 4. For each step, device_busy_ns + device_idle_ns == duration_ns. Ops and kernels
// belong to the step in whose window they start, those of no step to `outside`, so counts
// and busy time of all steps and `outside` add up to the trace's.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/steps/find_steps.h"
#include "model/model.h"

namespace firelane::analyze {

struct StepRow {
  int64_t number = kNoNumber;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t device_busy_ns = 0;  // some stream of some device worked
  int64_t device_idle_ns = 0;
  int64_t kernels = 0;  // started in the window
  int64_t copies_and_sets = 0;
  int64_t ops = 0;  // started in the window, on any thread
  bool warm_up = false;
  bool outlier = false;
};

struct StepTable {
  std::vector<StepRow> rows;  // in order of time
  // Before the first, between and after the last step; duration and idle time are not meant.
  StepRow outside;
  int64_t median_ns = kNoNumber;  // of the durations; the mean of the middle two when even
  int64_t min_ns = kNoNumber;
  int64_t max_ns = kNoNumber;
  StepSource source = StepSource::kWholeTrace;  // kWholeTrace: no steps were found, and there are no rows
  int64_t usual_ns = kNoNumber;                 // median without warm-up steps
  int64_t spread_ns = kNoNumber;                // median distance of those from it
  bool has_device_work = false;                 // without any, busy and idle time say nothing
  bool overlapping = false;                     // windows overlap: busy time in two windows counts in both
};

StepTable step_table(const Model& model);

}  // namespace firelane::analyze
