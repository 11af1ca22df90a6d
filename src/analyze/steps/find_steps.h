// Where the program's iterations begin and end, when the trace does not mark them too.
//
// Tried in this order: marked steps (ProfilerStep#N, our recorder's); optimizer steps, each
// ending one; a repeating sequence of operators on the leading thread. Else the whole trace
// is one step. Leading steps that are clearly slower than the rest are warm-up and not judged.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/common/intervals.h"
#include "analyze/host/host_time.h"
#include "model/model.h"

namespace firelane::analyze {

enum class StepSource : uint8_t { kMarked, kOptimizer, kRepetition, kWholeTrace };
std::string_view name_of(StepSource source);  // "marked", "optimizer", "repetition", "whole trace"

struct FoundStep {
  int64_t number = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  bool warm_up = false;
  bool outlier = false;  // much slower than the median of the steps that are judged
  int64_t duration_ns() const { return end_ns - start_ns; }
};

struct StepList {
  StepSource source = StepSource::kWholeTrace;
  std::vector<FoundStep> steps;  // at least one; in order of time, not overlapping
  Interval window;               // from the first to the last step that is judged
  int64_t judged = 0;            // steps in it
  int64_t median_ns = 0;         // of the judged steps
  int64_t spread_ns = 0;         // median distance from the median
};

StepList find_steps(const Model& model, const HostTime& host);

// Steps that were found, as the model would hold them.
Steps to_steps(const std::vector<FoundStep>& found);

enum class StepUse : uint8_t {
  // To measure by. Repetition is left out: it finds where the host issues an iteration, and unless something waits for
  // the device, that works on another one meanwhile.
  kMeasure,
  kShow,  // where the host issues each iteration, however it was found
};

// The model's own steps, else those that were found, as the model would hold them.
Steps trace_steps(const Model& model, StepUse use = StepUse::kMeasure);

}  // namespace firelane::analyze
