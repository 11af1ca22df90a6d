// What all threads of a program are doing now, as text: Python's frames, native ones where they can be read, who waits
// in which system call, who holds the GIL.
#pragma once

#include <string>

#include "base/result.h"
#include "live/process.h"

namespace firelane::live {

struct StacksTextOptions {
  bool native = true;        // where libdw is installed; a line says so where it is not
  pid_t left_out = 0;        // a thread that is not shown: the one that asks, of its own process
  int64_t running_ms = 200;  // to wait for samples of threads that run
};

// Needs neither the GIL nor any help of the program, so that it also works for one in which a thread never gives it
// back. An Error for a process that cannot be read.
Result<std::string> stacks_text(const Process& process, const StacksTextOptions& options);

// Whether it runs, or where it waits: "running", "waiting in futex".
std::string thread_state(pid_t process, pid_t thread);

}  // namespace firelane::live
