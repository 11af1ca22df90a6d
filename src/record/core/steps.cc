#include "record/core/steps.h"

#include <algorithm>
#include <utility>

namespace firelane::record {

namespace {

// Unknown where the thread changed meanwhile: another one has its own times.
ThreadTimes between(const ThreadTimes& began, const ThreadTimes& ended) {
  if (began.thread != ended.thread || began.ran_ns < 0 || ended.ran_ns < began.ran_ns) return {};
  if (ended.waited_ns < began.waited_ns) return {};
  return {
      .ran_ns = ended.ran_ns - began.ran_ns, .waited_ns = ended.waited_ns - began.waited_ns, .thread = ended.thread};
}

}  // namespace

void StepTimer::step(int64_t number, format::StepPhase phase) noexcept {
  ThreadTimes times = running_ ? ThreadTimes{} : reader_.read();  // opening its file is no part of a step
  const uint64_t now = now_ticks();
  if (running_) times = reader_.read();
  if (running_) {
    current_.duration_ticks = now - current_.start_ticks;
    current_.thread = between(began_, times);
    // The oldest half goes at once, so that this stays cheap.
    if (samples_.size() >= kMaxSamples) samples_.erase(samples_.begin(), samples_.begin() + kMaxSamples / 2);
    try {
      samples_.push_back(current_);
    } catch (...) {  // no memory: this step is not in the baseline
    }
  }
  current_ = {.number = number, .phase = phase, .start_ticks = now, .duration_ticks = 0};
  began_ = times;
  running_ = true;
}

void StepTimer::raise_phase(format::StepPhase phase) noexcept { current_.phase = std::max(current_.phase, phase); }

void StepTimer::finish() noexcept {
  if (!running_) return;
  step(0, format::StepPhase::kUnrecorded);
  running_ = false;
}

std::vector<StepSample> StepTimer::take() noexcept {
  reader_.close();  // most likely nobody goes on
  return std::exchange(samples_, {});
}

}  // namespace firelane::record
