// How long a thread of another process has been on a core, cheaply: a thread that sleeps is asked less and less often.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace firelane::live {

class ThreadClock {
 public:
  ThreadClock(pid_t process, pid_t thread);
  ThreadClock(ThreadClock&& other) noexcept;
  ThreadClock& operator=(ThreadClock&&) = delete;
  ~ThreadClock();

  // Whether the system has said so far how long it ran.
  bool is_known() const { return run_ns_ >= 0; }
  int64_t run_ns() const { return run_ns_; }  // when it was last asked; -1: not known

  // Whether the last `interval_ns` count as on a core. What is left over counts for later
  // ones, so that the sum of many is right. `has_moved`: the thread was seen to run since the last time.
  bool was_on_cpu(int64_t interval_ns, bool has_moved);

 private:
  int64_t read_run_ns() const;  // -1: not known

  pid_t process_ = 0;
  pid_t thread_ = 0;  // 0: not known
  // Its schedstat, kept open; -1 where this process may have few files (ulimit -n): then it is opened for each look.
  int file_ = -1;
  int64_t run_ns_ = -1;
  int64_t credit_ns_ = 0;
  uint32_t pause_ = 0;  // looks until it is asked again
  uint32_t next_pause_ = 0;
};

}  // namespace firelane::live
