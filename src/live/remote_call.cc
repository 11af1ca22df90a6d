#include "live/remote_call.h"

#if defined(__x86_64__)

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "live/elf.h"

namespace firelane::live {

namespace {

constexpr uint64_t kRedZone = 128;        // below the stack pointer, still in use by the function that was stopped
constexpr size_t kVectorBytes = 1 << 16;  // more than any CPU's registers take
constexpr auto kPatience = std::chrono::seconds(10);
constexpr uint64_t kNoSystemCall = ~uint64_t{0};
constexpr uint64_t kInstructionBytes = 2;
constexpr int64_t kRestart = 512;  // ERESTARTSYS and ERESTART_RESTARTBLOCK, which only tracers see
constexpr int64_t kRestartBlock = 516;

Error system_error(pid_t pid, const char* what) {
  if (errno == ESRCH) return Error{std::to_string(pid) + ": the program has ended"};
  return Error{std::to_string(pid) + ": " + what + ": " + std::strerror(errno)};
}

bool is_fault(int signal) { return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE; }

}  // namespace

struct RemoteCalls::State {
  pid_t pid = 0;
  uint64_t system_call = 0;  // an instruction of the C library: where calls return to, and are seen to do so
  struct user_regs_struct registers{};
  std::vector<uint8_t> vectors;
  sigset_t own_signals{};
  bool is_traced = false;
  bool is_in_call = false;  // stopped at the entry of a system call that is not to happen

  // The next stop of the thread; -1 with errno.
  int next_stop() const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      int status = 0;
      const pid_t got = ::waitpid(pid, &status, __WALL | WNOHANG);
      if (got == pid && WIFSTOPPED(status)) return status;
      if (got == pid || (got < 0 && errno != EINTR)) {
        errno = ESRCH;
        return -1;
      }
      if (std::chrono::steady_clock::now() > end) {
        errno = ETIMEDOUT;
        return -1;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  // Interrupts the thread where it is; signals that come first are handed on to it.
  bool interrupt() const {
    if (::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0) return false;
    for (;;) {
      const int status = next_stop();
      if (status < 0) return false;
      if (status >> 16 == PTRACE_EVENT_STOP) return true;
      const int signal = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
      if (::ptrace(PTRACE_CONT, pid, nullptr, signal) != 0) return false;
    }
  }

  bool set_vectors() {
    struct iovec part{.iov_base = vectors.data(), .iov_len = vectors.size()};
    return ::ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &part) == 0;
  }

  // A thread that was stopped in a system call goes on with it only from a stop like the first one, where the kernel
  // decides about that.
  bool leave_call() {
    if (!is_in_call) return true;
    is_in_call = false;
    struct user_regs_struct now{};
    if (::ptrace(PTRACE_GETREGS, pid, nullptr, &now) != 0) return false;
    now.orig_rax = kNoSystemCall;
    if (::ptrace(PTRACE_SETREGS, pid, nullptr, &now) != 0) return false;
    if (::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0) return false;
    if (::ptrace(PTRACE_CONT, pid, nullptr, nullptr) != 0) return false;
    for (;;) {
      const int status = next_stop();
      if (status < 0) return false;
      if (status >> 16 == PTRACE_EVENT_STOP) return true;
      kept_signal = WSTOPSIG(status);  // handled after the thread is back in its own place
      if (::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0 || ::ptrace(PTRACE_CONT, pid, nullptr, nullptr) != 0)
        return false;
    }
  }

  // A thread that waits for a lock is told that a signal came, and looks for what is to be done meanwhile: so a main
  // thread that only waits for others runs the code as well. Whoever waits for a futex expects that at any time.
  void end_wait() {
    const auto result = static_cast<int64_t>(registers.rax);
    if (registers.orig_rax != SYS_futex || (result != -kRestart && result != -kRestartBlock)) return;
    registers.rax = static_cast<uint64_t>(-EINTR);
    registers.orig_rax = kNoSystemCall;
  }

  int kept_signal = 0;
};

RemoteCalls::RemoteCalls(std::unique_ptr<State> state) : state_(std::move(state)) {}
RemoteCalls::RemoteCalls(RemoteCalls&&) noexcept = default;

RemoteCalls::~RemoteCalls() {
  if (!state_) return;
  State& s = *state_;
  if (s.is_traced) {
    s.leave_call();
    s.set_vectors();
    s.end_wait();
    ::ptrace(PTRACE_SETREGS, s.pid, nullptr, &s.registers);
    ::ptrace(PTRACE_DETACH, s.pid, nullptr, nullptr);
    if (s.kept_signal != 0) ::kill(s.pid, s.kept_signal);
  }
  ::sigprocmask(SIG_SETMASK, &s.own_signals, nullptr);
}

Result<RemoteCalls> RemoteCalls::stop_main_thread(const Process& process) {
  FL_TRY(const std::string libc, c_library(process));
  static constexpr std::array<std::string_view, 1> kSyscall = {"syscall"};
  FL_TRY(const std::vector<uint64_t> function, symbol_addresses(process, libc, kSyscall));
  std::array<uint8_t, 64> bytes{};
  struct iovec own{.iov_base = bytes.data(), .iov_len = bytes.size()};
  struct iovec other{.iov_base = reinterpret_cast<void*>(function[0]), .iov_len = bytes.size()};
  if (::process_vm_readv(process.pid, &own, 1, &other, 1, 0) != static_cast<ssize_t>(bytes.size()))
    return system_error(process.pid, "process_vm_readv");
  static constexpr std::array<uint8_t, 2> kInstruction = {0x0f, 0x05};
  const auto found = std::search(bytes.begin(), bytes.end(), kInstruction.begin(), kInstruction.end());
  if (found == bytes.end()) return Error{libc + ": its syscall() is not as expected"};

  auto state = std::make_unique<State>();
  state->pid = process.pid;
  state->system_call = function[0] + static_cast<uint64_t>(found - bytes.begin());
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &state->own_signals);
  RemoteCalls out(std::move(state));
  State& s = *out.state_;
  if (::ptrace(PTRACE_SEIZE, s.pid, nullptr, PTRACE_O_TRACESYSGOOD) != 0) return system_error(s.pid, "ptrace");
  if (!s.interrupt()) {
    const Error error = system_error(s.pid, "cannot be stopped");
    ::ptrace(PTRACE_DETACH, s.pid, nullptr, nullptr);
    return error;
  }
  s.vectors.resize(kVectorBytes);
  struct iovec part{.iov_base = s.vectors.data(), .iov_len = s.vectors.size()};
  if (::ptrace(PTRACE_GETREGS, s.pid, nullptr, &s.registers) != 0 ||
      ::ptrace(PTRACE_GETREGSET, s.pid, NT_X86_XSTATE, &part) != 0) {
    const Error error = system_error(s.pid, "registers");
    ::ptrace(PTRACE_DETACH, s.pid, nullptr, nullptr);
    return error;
  }
  s.vectors.resize(part.iov_len);
  s.is_traced = true;
  return out;
}

Result<uint64_t> RemoteCalls::call(uint64_t function, std::initializer_list<uint64_t> arguments) {
  State& s = *state_;
  if (!s.leave_call()) return system_error(s.pid, "ptrace");
  struct user_regs_struct r = s.registers;
  r.rsp = ((s.registers.rsp - kRedZone) & ~uint64_t{15}) - 8;
  // Writing by ptrace also works where the stack has not grown to yet.
  if (::ptrace(PTRACE_POKEDATA, s.pid, r.rsp, s.system_call) != 0) return system_error(s.pid, "its stack");
  const std::array<decltype(&r.rdi), 6> places = {&r.rdi, &r.rsi, &r.rdx, &r.rcx, &r.r8, &r.r9};
  size_t place = 0;
  for (const uint64_t argument : arguments) *places[place++] = argument;
  r.rip = function;
  r.rax = 0;
  r.eflags &= ~uint64_t{0x400};  // the direction flag, which functions expect to be clear
  r.orig_rax = kNoSystemCall;    // no system call is to be restarted
  if (::ptrace(PTRACE_SETREGS, s.pid, nullptr, &r) != 0) return system_error(s.pid, "ptrace");
  for (int signal = 0;;) {
    if (::ptrace(PTRACE_SYSCALL, s.pid, nullptr, signal) != 0) return system_error(s.pid, "ptrace");
    signal = 0;
    const int status = s.next_stop();
    if (status < 0 && errno == ETIMEDOUT) s.interrupt();
    if (status < 0) return system_error(s.pid, "a call in it did not return");
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      if (status >> 16 != 0) continue;
      if (is_fault(WSTOPSIG(status))) return Error{std::to_string(s.pid) + ": a call in it failed"};
      signal = WSTOPSIG(status);
      continue;
    }
    struct user_regs_struct now{};
    if (::ptrace(PTRACE_GETREGS, s.pid, nullptr, &now) != 0) return system_error(s.pid, "ptrace");
    if (now.rip != s.system_call + kInstructionBytes || now.rsp != r.rsp + 8)
      continue;  // a system call of the function itself
    s.is_in_call = true;
    return now.orig_rax;  // what the function left in rax: taken for the number of the system call
  }
}

}  // namespace firelane::live

#else

namespace firelane::live {

struct RemoteCalls::State {};
RemoteCalls::RemoteCalls(std::unique_ptr<State> state) : state_(std::move(state)) {}
RemoteCalls::RemoteCalls(RemoteCalls&&) noexcept = default;
RemoteCalls::~RemoteCalls() = default;
Result<RemoteCalls> RemoteCalls::stop_main_thread(const Process&) { return Error{"only on x86-64"}; }
Result<uint64_t> RemoteCalls::call(uint64_t, std::initializer_list<uint64_t>) { return Error{"only on x86-64"}; }

}  // namespace firelane::live

#endif
