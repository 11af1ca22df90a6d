// A thread that notices when its process does not say for too long that it is well while one thread keeps the GIL, and
// writes what all threads are doing. It never asks for the GIL itself, but looks who has it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace firelane::live {

class Watchdog {
 public:
  // `folder`: where incidents are kept.
  explicit Watchdog(std::string folder);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  // All is well at this step. Without another call for `limit_ms`, and with the GIL kept by the same thread whenever it
  // was looked at in the second half of that, folder/step-N-hang gets stacks.txt and incident.txt, once. 0: no limit.
  void feed(int64_t step, int64_t limit_ms);

  // The step of an incident that was written since the last call; -1: none.
  int64_t take_incident();

 private:
  // A child that was forked has the object and not its thread: what that waits with is left to it then.
  struct Shared;

  static void watch(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
  int process_;
};

}  // namespace firelane::live
