// A thread of our own inside of the user's program: it has a name, and takes none of the program's signals. A file size
// limit (SIGXFSZ), too, is then an error of write() instead of the program's end.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <exception>
#include <functional>
#include <thread>
#include <utility>

namespace firelane {

// Not joinable if no thread could be started. `name`: at most 15 characters. What `body` throws ends the program.
inline std::thread start_own_thread(const char* name, std::function<void()> body) noexcept {
  std::thread thread;
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread = std::thread(std::move(body));
    ::pthread_setname_np(thread.native_handle(), name);
  } catch (const std::exception&) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace firelane
