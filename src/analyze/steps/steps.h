// Time per step: how long, and how much of it the devices were busy.
//
// Steps are marked (ProfilerStep#N), else found by optimizer steps or by repetition (find_steps.h); how long one took
// is the length of its span (step_spans.h): until the host came to the next and the device had done what the step
// launched. Device work counts as busy where it runs; for each step, device_busy_ns + device_idle_ns == duration_ns.
// Ops belong to the step in which they start on the host, kernels to the one that launched them, those of no step to
// `outside`, so counts and busy time of all steps and `outside` add up to the trace's.
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
  int64_t kernels = 0;  // launched in it
  int64_t copies_and_sets = 0;
  int64_t ops = 0;  // started in it, on any thread
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
  int64_t usual_ns = kNoNumber;                 // usual_length without warm-up steps
  int64_t spread_ns = kNoNumber;                // median distance of those from it
  bool has_device_work = false;                 // without any, busy and idle time say nothing
  // Marked by several threads: rows are windows of the host, and busy time in two of them counts in both.
  bool overlapping = false;
};

StepTable step_table(const Model& model);

}  // namespace firelane::analyze
