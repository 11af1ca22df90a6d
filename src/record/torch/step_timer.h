// The true step time, on the GPU as well: at each step's start a CUDA event is recorded on the current stream; its time
// is read much later, when the steps are taken. Nothing waits for the device.
//
// On a host that runs ahead of its device, steps look shorter than they are; by the device's clock they have their real
// length.
#pragma once

#include <c10/core/Event.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "record/core/steps.h"

namespace firelane::torch_hooks {

// As StepTimer: not thread-safe, step() is called by the thread that trains.
class TorchStepTimer {
 public:
  static constexpr size_t kMaxMarks = 256;  // the newest; earlier steps have only the host's time

  explicit TorchStepTimer(bool on_device = false) : on_device_(on_device) {}
  TorchStepTimer(const TorchStepTimer&) = delete;
  TorchStepTimer& operator=(const TorchStepTimer&) = delete;
  TorchStepTimer(TorchStepTimer&&) = default;
  TorchStepTimer& operator=(TorchStepTimer&&) = default;

  void step(int64_t number, format::StepPhase phase) noexcept;
  void raise_phase(format::StepPhase phase) noexcept { timer_.raise_phase(phase); }
  void finish() noexcept;

  const std::vector<record::StepSample>& samples() const noexcept { return timer_.samples(); }
  // Steps whose events the device has not reached yet, or that were recorded, have no device time, and neither does any
  // while a CUDA graph is captured.
  std::vector<record::StepSample> take() noexcept;

 private:
  struct Mark {
    uint64_t ticks = 0;
    c10::Event event{c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT};
  };
  void mark() noexcept;
  const Mark* mark_at(uint64_t ticks) const noexcept;

  bool on_device_;
  record::StepTimer timer_;
  std::deque<Mark> marks_;  // oldest first
};

}  // namespace firelane::torch_hooks
