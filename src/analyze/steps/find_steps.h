// Where the program's iterations begin and end, when the trace does not mark them too.
//
// Tried in this order: marked steps (ProfilerStep#N, our recorder's); optimizer steps, each
// ending one; a repeating sequence of operators on the leading thread. Else the whole trace
// is one step. Leading steps that are clearly slower than the rest are warm-up and not judged.
// How long a step took is the length of its span (step_spans.h): the host may run ahead of the device.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "analyze/common/intervals.h"
#include "analyze/host/host_time.h"
#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::analyze {

enum class StepSource : uint8_t { kMarked, kOptimizer, kRepetition, kWholeTrace };
std::string_view name_of(StepSource source);  // "marked", "optimizer", "repetition", "whole trace"

struct FoundStep {
  int64_t number = 0;
  int64_t start_ns = 0;  // on the host
  int64_t end_ns = 0;
  Interval span{};  // until host and device were done with it
  bool warm_up = false;
  bool outlier = false;  // much slower than the median of the steps that are judged
  int64_t lost_ns = 0;   // to other programs, which had the cores (core_waits.h)
  int64_t duration_ns() const { return span.end_ns - span.start_ns; }
  int64_t own_ns() const { return duration_ns() - lost_ns; }
};

struct StepList {
  StepSource source = StepSource::kWholeTrace;
  std::vector<FoundStep> steps;  // at least one; in order of time, not overlapping
  Interval window;               // from the first to the last step that is judged, on the host
  int64_t judged = 0;            // steps in it
  int64_t median_ns = 0;         // of the judged steps: usual_length of their spans
  int64_t spread_ns = 0;         // median distance from the median

  std::vector<Interval> judged_spans() const;
};

StepList find_steps(const Model& model, const HostTime& host);

enum class StepUse : uint8_t {
  kMeasure,  // spans: what a step took
  // Windows of the host: which step an operator, an allocation or a call lies in. Only of steps that are marked or end
  // with an optimizer.
  kHost,
  kShow,  // windows of the host, however they were found
};

// Steps that were found, as the model would hold them.
Steps to_steps(const std::vector<FoundStep>& found, StepUse use);

// What the host did and the steps that it made, which many analyses begin with: trace.get<host_steps>() finds them
// once.
struct HostSteps {
  std::shared_ptr<const HostTime> host;
  StepList steps;
};
HostSteps host_steps(const Model& model);

// The steps of a trace; none when it is one step as a whole.
Steps steps_of(const Model& model, StepUse use = StepUse::kMeasure);
Steps trace_steps(const StudiedTrace& trace, StepUse use = StepUse::kMeasure);

}  // namespace firelane::analyze
