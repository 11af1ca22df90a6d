// Launches and other calls worth recording, from CUPTI's callbacks: on the calling thread, into its own buffer, by the
// recorder's clock.
//
// CUPTI's activity records of calls (kinds RUNTIME and DRIVER) say the same, but slow down every CUDA call, even
// those that are turned off: on an H200 they added more to a training step than the kernels' records. Callbacks
// cost only the calls that are enabled. Only the outermost call is kept: a runtime call reaches the driver through
// calls of its own.
#pragma once

#include <string>

#include "record/cupti/api.h"

namespace firelane::cupti {

class CallHook {
 public:
  // At most one at a time in a process.
  explicit CallHook(const CuptiApi& api) : api_(api) {}
  ~CallHook() { stop(); }
  CallHook(const CallHook&) = delete;
  CallHook& operator=(const CallHook&) = delete;

  // False if another tool has subscribed (nsys, torch.profiler earlier in the process), or CUPTI refuses: `result` says
  // which. Calls already on the stack of other threads are left out.
  bool start(CUptiResult& result) noexcept;
  // No callback begins after this; those under way may still end. Idempotent.
  void stop() noexcept;

 private:
  static void on_call(void* data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* call);

  const CuptiApi api_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

}  // namespace firelane::cupti
