// What the system says of a thread: how long it ran, and how long it was ready to run and had no core because other
// threads, or a limit of its container, kept it from one. A step that is slow for that is not the program's doing.
//
// From /proc/self/task/TID/schedstat, one system call a look (about 1 us). The time without a core is exact; the time
// on a core lags by up to a tick of the scheduler, which evens out over steps.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace firelane::record {

struct ThreadTimes {
  int64_t ran_ns = -1;     // since the thread began; below 0: the system does not say
  int64_t waited_ns = -1;  // ready to run, without a core
  pid_t thread = 0;
};

// For whichever thread asks. Keeps one file open from the first look until close(). Not thread-safe.
class ThreadTimesReader {
 public:
  ThreadTimesReader() = default;
  ~ThreadTimesReader();
  ThreadTimesReader(ThreadTimesReader&& other) noexcept;
  ThreadTimesReader& operator=(ThreadTimesReader&& other) noexcept;

  ThreadTimes read() noexcept;
  void close() noexcept;

 private:
  pid_t thread_ = 0;  // whose file it is: a forked child and another thread have others
  int file_ = -1;
};

}  // namespace firelane::record
