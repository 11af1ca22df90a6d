// The true step time: steps that are not recorded are timed too, at the cost of one clock reading and one look at the
// thread's times each, so that every verdict can describe the program as it runs without the recorder.
//
//   StepTimer timer;                       // lives as long as the profiler object
//   timer.step(12, StepPhase::kUnrecorded);  // step 12 begins now; the one before ends
//   timer.finish();                        // the last one ends
//   session->add_steps(timer.take());      // into the trace
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "format/layout.h"
#include "record/core/thread_times.h"

namespace firelane::record {

struct StepSample {
  int64_t number = 0;
  format::StepPhase phase = format::StepPhase::kUnrecorded;
  uint64_t start_ticks = 0;
  uint64_t duration_ticks = 0;
  int64_t device_ns = -1;  // between its ends on the GPU's stream; -1 unknown
  ThreadTimes thread;      // of the thread that trains, during the step
};

// Not thread-safe: step() is called by the thread that trains. Keeps the newest kMaxSamples.
class StepTimer {
 public:
  static constexpr size_t kMaxSamples = 1024;

  StepTimer() { samples_.reserve(64); }

  // A step that changed its phase midway (recording began inside it) counts as the more
  // disturbed of the two: call raise_phase() when the recorder is switched on.
  void step(int64_t number, format::StepPhase phase) noexcept;
  void raise_phase(format::StepPhase phase) noexcept;
  void finish() noexcept;
  bool running() const noexcept { return running_; }
  // When the current step began, or, after finish(), when the last one ended.
  uint64_t mark_ticks() const noexcept { return current_.start_ticks; }

  const std::vector<StepSample>& samples() const noexcept { return samples_; }
  std::vector<StepSample> take() noexcept;

 private:
  std::vector<StepSample> samples_;
  StepSample current_;
  ThreadTimesReader reader_;
  ThreadTimes began_;  // as the current step began
  bool running_ = false;
};

}  // namespace firelane::record
