// Calls functions of another process on its main thread: stops that thread alone, calls, and lets it go on where it
// was.
//
// As debuggers do it, but every register is kept, whatever vector units the CPU has (gdb 13 cannot, on CPUs with AMX),
// and the other threads are not stopped, so that a lock that one of them holds is released. Only on x86-64.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "base/result.h"
#include "live/process.h"

namespace firelane::live {

class RemoteCalls {
 public:
  static constexpr bool kIsAvailable =
#if defined(__x86_64__)
      true;
#else
      false;
#endif

  // The main thread is stopped until this object is destroyed. Signals to this process wait as long.
  static Result<RemoteCalls> stop_main_thread(const Process& process);
  RemoteCalls(RemoteCalls&&) noexcept;
  RemoteCalls& operator=(RemoteCalls&&) = delete;
  ~RemoteCalls();

  // The function's result. At most six arguments. It must not need a lock that the stopped thread may hold.
  Result<uint64_t> call(uint64_t function, std::initializer_list<uint64_t> arguments);

 private:
  struct State;
  explicit RemoteCalls(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace firelane::live
