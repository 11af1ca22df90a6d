#include "record/torch/step_timer.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "record/core/thread_buffer.h"
#if FIRELANE_TORCH_CUDA
#include "record/torch/cuda_memory.h"
#include "record/torch/graph_capture.h"
#endif

namespace firelane::torch_hooks {
namespace {

// Do not start CUDA in a program that has not: it may fork, and its children could not use it then.
bool can_use_events() {
#if FIRELANE_TORCH_CUDA
  return is_cuda_started() && c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA) && !is_capturing_graph();
#else
  return false;
#endif
}

}  // namespace

void TorchStepTimer::step(int64_t number, format::StepPhase phase) noexcept {
  timer_.step(number, phase);
  // Not while recording: the call would appear in the trace as the program's own.
  const bool is_recorded = phase == format::StepPhase::kRecorded || phase == format::StepPhase::kLight;
  if (on_device_ && !is_recorded) mark();
}

void TorchStepTimer::finish() noexcept {
  if (!timer_.running()) return;
  timer_.finish();
  if (on_device_ && !record::is_recording()) mark();
}

void TorchStepTimer::mark() noexcept {
  try {
    if (!can_use_events()) return;
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    Mark& mark = marks_.emplace_back();
    mark.ticks = timer_.mark_ticks();
    mark.event.record(guard.getStream(guard.getDevice()));
    if (marks_.size() > kMaxMarks) marks_.pop_front();
  } catch (const std::exception&) {  // a device that has failed: the host's times stay
    on_device_ = false;
    marks_.clear();
  }
}

const TorchStepTimer::Mark* TorchStepTimer::mark_at(uint64_t ticks) const noexcept {
  const auto at = std::lower_bound(marks_.begin(), marks_.end(), ticks,
                                   [](const Mark& mark, uint64_t wanted) { return mark.ticks < wanted; });
  return at != marks_.end() && at->ticks == ticks ? &*at : nullptr;
}

std::vector<record::StepSample> TorchStepTimer::take() noexcept {
  std::vector<record::StepSample> samples = timer_.take();
  const bool can_ask = !marks_.empty() && can_use_events();
  for (record::StepSample& s : samples) {
    const Mark* begin = mark_at(s.start_ticks);
    const Mark* end = mark_at(s.start_ticks + s.duration_ticks);
    if (!can_ask || begin == nullptr || end == nullptr) continue;
    try {
      if (!begin->event.query() || !end->event.query()) continue;
      const double ms = begin->event.elapsedTime(end->event);
      if (ms >= 0) s.device_ns = std::llround(ms * 1e6);
    } catch (const std::exception&) {  // of two devices, say
    }
  }
  while (marks_.size() > 1) marks_.pop_front();  // the last one begins the current step
  return samples;
}

}  // namespace firelane::torch_hooks
