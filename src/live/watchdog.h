// A thread that notices when its process does not say for too long that it is well while one thread keeps the GIL, and
// writes what all threads are doing. It never asks for the GIL itself, but looks who has it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace firelane::live {

class Watchdog {
 public:
  // Who has the GIL: the same for as long as one thread has it; 0 for nobody, and where that is not known.
  using Holder = std::function<uint64_t()>;

  // `folder`: where incidents are kept. `holder` is asked by the watchdog's thread; without one, this process's Python.
  // Loads libdw where it is installed: in a hang another thread may have the loader's lock.
  explicit Watchdog(std::string folder, Holder holder = {});
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  // Waits for nothing: the thread may be writing to a disk that does not answer, and ends when it is done.
  ~Watchdog();

  // All is well at this step. Without another call for `limit_ms`, and with the GIL kept by the same thread whenever it
  // was looked at in the second half of that, folder/step-N-hang gets stacks.txt with Python's frames, then
  // incident.txt, and then a stacks.txt with native frames instead; once. 0: no limit.
  void feed(int64_t step, int64_t limit_ms);

  // The step of an incident since the last call, whose files may still be on their way; -1: none.
  int64_t take_incident();

  // Ends the thread; false if it has more to do than fits into that time. Not to be called with the GIL held.
  bool end(std::chrono::milliseconds longest_wait);

 private:
  // All that the thread has. A child that was forked has the object and not its thread.
  struct Shared;

  static void watch(Shared& shared);

  std::shared_ptr<Shared> shared_;
  int process_;
};

}  // namespace firelane::live
