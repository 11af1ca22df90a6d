// A session and torch's hooks together: what the Python module and the C++ Profiler start and stop.
//
//   auto recording = Recording::start({.shapes = true});
//   ... the program runs ...
//   recording.value()->stop();
//   recording.value()->session().save("run.lane");
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "record/core/session.h"
#include "record/torch/device.h"

namespace firelane::torch_hooks {

class Recording {
 public:
  // An Error if a recording is running already. What cannot be hooked is a loss, not an Error.
  // `more_costs`: kinds of events of the caller's own hooks, and how to measure them (record/torch/cost.h).
  static Result<std::unique_ptr<Recording>> start(
      record::RecordOptions options, const std::map<std::string, std::function<double()>>& more_costs = {});
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // No hook costs anything while paused, except that frees of recorded blocks are still counted.
  void pause() noexcept;
  void resume() noexcept;
  // With start_light: from now on ops, inputs and memory, too. Idempotent. Light steps come first, full ones after
  // them: there is no way back.
  void begin_full() noexcept;
  // The same for what the GPU does; neither waits for it. With start_paused device activity counts from the first
  // resume.
  void pause_device() noexcept;
  void resume_device() noexcept;
  // Permanently, while the rest continues: waits for the work that is queued. Idempotent.
  void stop_device() noexcept;
  // The hooks are off when this returns. Idempotent.
  void stop() noexcept;
  bool is_stopped() const noexcept { return stopped_; }

  record::Session& session() noexcept { return *session_; }
  const record::Session& session() const noexcept { return *session_; }

 private:
  Recording() = default;
  void hook_ops() noexcept;
  void hook_memory() noexcept;

  std::unique_ptr<record::Session> session_;
  std::unique_ptr<DeviceRecording> device_;  // null: not asked for
  bool light_ = false;
  bool stopped_ = false;
};

}  // namespace firelane::torch_hooks
