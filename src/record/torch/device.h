// The GPU part of a recording: activity (record/cupti), memory, power. What is not available becomes a loss.
#pragma once

#include <filesystem>
#include <memory>

#include "record/core/session.h"

namespace firelane::torch_hooks {

// Whether the process may use an NVIDIA GPU. Looks for the driver instead of asking CUDA: a process that
// started CUDA cannot fork children that use it.
bool has_gpu(const std::filesystem::path& devices = "/dev") noexcept;

class DeviceRecording {
 public:
  // Never null; without a GPU it does nothing. Device activity before open_window() is warm-up.
  static std::unique_ptr<DeviceRecording> start(record::Session& session) noexcept;
  virtual ~DeviceRecording() = default;

  virtual void open_window() noexcept = 0;
  // Neither waits for the device.
  virtual void pause() noexcept = 0;
  virtual void resume() noexcept = 0;
  // From now on, and again after a pause, power and, if that is wanted, memory are known. REQUIRES: the session
  // records.
  virtual void begin_counts(bool with_memory) noexcept = 0;
  // Waits for the work that is queued, so that all of it is in the trace; then everything is off. Before
  // Session::stop(). Idempotent.
  virtual void stop() noexcept = 0;
};

}  // namespace firelane::torch_hooks
