// Registers and stacks of a thread while it runs on a core, copied by the kernel at a rate (perf_event_open). The
// thread is interrupted for the copy, as by the kernel's own timer, and not stopped.
//
// Needs kernel.perf_event_paranoid of 2 or less, or CAP_PERFMON; containers forbid it by default.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/result.h"
#include "live/unwinder.h"

namespace firelane::live {

enum class SamplesRefused : uint8_t {
  kEnded,      // the thread
  kForbidden,  // of any thread: this system, or its settings
  kNoRoom,     // for one more: files, or memory
};

class ThreadSamples {
 public:
  // A sample each `interval_ns` that the thread is on a core. The Error says why not, and `refused` of what kind it is.
  static Result<ThreadSamples> open(pid_t thread, int64_t interval_ns, SamplesRefused& refused);
  ThreadSamples(ThreadSamples&& other) noexcept;
  ThreadSamples& operator=(ThreadSamples&&) = delete;
  ~ThreadSamples();

  int file() const { return file_; }  // readable (poll) when there is a sample

  // The newest sample that has not been taken, and forgets the others; false if there is none.
  bool take(Registers& registers, StackCopy& stack);

 private:
  ThreadSamples(int file, uint8_t* ring) : file_(file), ring_(ring) {}

  int file_ = -1;
  uint8_t* ring_ = nullptr;
};

// One record of the kernel (PERF_RECORD_SAMPLE, without its header) as it was asked for here; false if it is cut, or of
// a thread that has no user memory. For tests: the bytes are the kernel's.
bool parse_sample(const uint8_t* bytes, size_t size, Registers& registers, StackCopy& stack);

}  // namespace firelane::live
