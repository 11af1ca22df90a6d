// How long a step took: the one definition that tables, verdicts and prices follow.
//
// The host may run ahead of the device. So a step ends when the host has come to the next one and the device has done
// what was launched in it, whichever is later, and the next step begins then. Spans touch: their lengths add up to the
// time from the first step to the end of the last. Only where steps in between were not recorded (their numbers are
// missing) does a span end without another one beginning.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/common/intervals.h"
#include "model/model.h"

namespace firelane::analyze {

struct FoundStep;

inline constexpr int64_t kBacklogNs = 500'000;  // a first piece of work this late waited for work before the trace

// What ends a step, on the clock of the trace or of a replay.
struct StepMoments {
  int64_t begin_ns = 0;  // on the host
  int64_t end_ns = 0;
  int64_t device_end_ns = INT64_MIN;  // of what was launched in it
  bool followed = true;               // the next one is the next iteration of the program
};

// Spans from `start_ns` on, before which the device was still busy with older work.
std::vector<Interval> lay_spans(const std::vector<StepMoments>& moments, int64_t start_ns);

// Spans of all steps as they were recorded. REQUIRES: in order of time.
std::vector<Interval> recorded_spans(const Model& model, const std::vector<FoundStep>& steps);

// Whether steps[i + 1] is the next iteration: no steps between them went unrecorded.
bool is_followed(const std::vector<FoundStep>& steps, size_t i);

// The step in which something that the host did at `time_ns` lies, the pause after a step included; SIZE_MAX: none.
size_t step_at(const std::vector<FoundStep>& steps, int64_t time_ns);

// The step of a piece of device work: the one that launched it.
size_t step_of_work(const Model& model, const std::vector<FoundStep>& steps, Row device_row);

// What is usual among lengths: the median; the shorter of two, and of the middle two where they differ much: what
// interferes makes a step longer, as a profiler does that uses its buffers for the first time, or writes them out.
int64_t usual_length(const std::vector<Interval>& spans);

}  // namespace firelane::analyze
