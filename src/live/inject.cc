#include "live/inject.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "live/elf.h"
#include "live/remote_call.h"

extern char** environ;

namespace firelane::live {

namespace {

constexpr std::string_view kPage = "@PAGE@";
constexpr std::string_view kDone = "firelane-asked:";
constexpr int kFirstWithRemoteExec = 14;
constexpr int kPatienceMs = 60'000;

struct Ended {
  int exit_code = 0;
  std::string output;  // both streams
};

// Runs a program in a process group of its own, so that Ctrl-C does not end a debugger in the middle of a call.
Result<Ended> run_program(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error{std::string("pipe: ") + std::strerror(errno)};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words[0], &actions, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(ends[0]);
    return Error{command[0] + ": " + std::strerror(failed)};
  }
  Ended out;
  std::array<char, 4096> bytes;
  for (;;) {
    struct pollfd ready{.fd = ends[0], .events = POLLIN, .revents = 0};
    const int count = ::poll(&ready, 1, kPatienceMs);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) ::kill(child, SIGTERM);  // a debugger detaches then
    const ssize_t got = count > 0 ? ::read(ends[0], bytes.data(), bytes.size()) : 0;
    if (got <= 0) break;
    out.output.append(bytes.data(), static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

// A file that only this process and its children see.
Result<int> text_file(const std::string& text) {
  const int file = ::memfd_create("firelane", 0);
  if (file < 0 || ::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    if (file >= 0) ::close(file);
    return Error{std::string("memfd_create: ") + std::strerror(errno)};
  }
  return file;
}

std::string with_page(const std::string& code, const std::string& page) {
  std::string out = code;
  const size_t at = out.find(kPage);
  if (at != std::string::npos) out.replace(at, kPage.size(), page);
  return out;
}

// The interpreter of the program asks on our behalf: it must be of the same version as the program's.
Result<Asked> run_by_remote_exec(const Process& process, const std::string& code) {
  std::string path = "/tmp/firelane-attach-XXXXXX";
  const int file = ::mkstemp(path.data());
  if (file < 0) return Error{path + ": " + std::strerror(errno)};
  Asked out(path);
  const std::string text = with_page(code, "0");
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::fchmod(file, 0644);  // the program may run as another user
  ::close(file);
  const auto ended =
      run_program({"/proc/" + std::to_string(process.pid) + "/exe", "-I", "-S", "-c",
                   "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])", std::to_string(process.pid), path});
  if (written && ended.ok() && ended.value().exit_code == 0) return out;
  return Error{std::to_string(process.pid) +
               ": sys.remote_exec: " + (ended.ok() ? complaint_of(ended.value().output) : ended.error().message)};
}

struct Addresses {
  uint64_t mmap = 0;
  uint64_t add_call = 0;  // Py_AddPendingCall
  uint64_t run = 0;       // PyRun_SimpleString
};

Result<Addresses> find_addresses(const Process& process, const Python& python) {
  static constexpr std::array<std::string_view, 2> kPython = {"Py_AddPendingCall", "PyRun_SimpleString"};
  static constexpr std::array<std::string_view, 1> kLibc = {"mmap"};
  FL_TRY(const std::vector<uint64_t> calls, python_addresses(process, python, kPython));
  FL_TRY(const std::string libc, c_library(process));
  FL_TRY(const std::vector<uint64_t> mmap_address, symbol_addresses(process, libc, kLibc));
  if (mmap_address[0] == 0) return Error{libc + ": does not export mmap"};
  return Addresses{.mmap = mmap_address[0], .add_call = calls[0], .run = calls[1]};
}

Result<void> run_by_calls(const Process& process, const Addresses& at, const std::string& code) {
  FL_TRY(RemoteCalls calls, RemoteCalls::stop_main_thread(process));
  FL_TRY(const uint64_t page,
         calls.call(at.mmap, {0, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0}));
  if (page == ~uint64_t{0} || page % 4096 != 0) return Error{std::to_string(process.pid) + ": has no memory left"};
  std::array<char, 24> digits;
  std::snprintf(digits.data(), digits.size(), "%020llu", static_cast<unsigned long long>(page));
  std::string text = with_page(code, digits.data());
  struct iovec own{.iov_base = text.data(), .iov_len = text.size() + 1};
  struct iovec other{.iov_base = reinterpret_cast<void*>(page), .iov_len = text.size() + 1};
  if (text.size() >= kPageBytes || ::process_vm_writev(process.pid, &own, 1, &other, 1, 0) < 0)
    return Error{std::to_string(process.pid) + ": its memory: " + std::strerror(errno)};
  FL_TRY(const uint64_t asked, calls.call(at.add_call, {at.run, page}));
  if (static_cast<int>(asked) != 0) {
    return Error{std::to_string(process.pid) +
                 ": its Python has too many calls waiting; its main thread may hang (gdb, py-spy dump)"};
  }
  return {};
}

Result<void> run_by_gdb(const Process& process, const Python& python, const Addresses& at, const std::string& code) {
  FL_TRY(const int script, text_file(gdb_script(at.mmap, at.add_call, at.run, code)));
  const auto ended = run_program({"gdb", "-nx", "-q", "-batch", "-iex", "set auto-solib-add off", "-iex",
                                  "set auto-load off", "-iex", "set debuginfod enabled off", "-iex", "set confirm off",
                                  "-p", std::to_string(process.pid), "-x", "/proc/self/fd/" + std::to_string(script)});
  ::close(script);
  if (!ended.ok()) {
    return Error{ended.error().message + "; attaching to Python " + python.version.text() +
                 " needs gdb: apt install gdb, or conda install gdb"};
  }
  if (ended.value().output.find(std::string(kDone) + "0") != std::string::npos) return {};
  if (::kill(process.pid, 0) != 0 && errno == ESRCH)
    return Error{std::to_string(process.pid) + ": the program has ended"};
  return Error{std::to_string(process.pid) + ": gdb could not attach: " + complaint_of(ended.value().output)};
}

}  // namespace

std::string complaint_of(const std::string& output) {
  std::string last = "no answer";
  bool is_next = false;  // gdb names the line of the script before it says what was wrong
  for (size_t begin = 0; begin < output.size();) {
    const size_t end = std::min(output.find('\n', begin), output.size());
    const std::string line = output.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty()) continue;
    if (is_next || line.starts_with("ptrace:")) return line;
    is_next = line.ends_with("Error in sourced command file:");
    if (!is_next && line.find("Error") != std::string::npos) return line;
    last = line;
  }
  return last;
}

std::string gdb_script(uint64_t mmap_address, uint64_t add_call_address, uint64_t run_address,
                       const std::string& code) {
  const auto hex = [](uint64_t value) {
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
    return std::string(text.data());
  };
  const std::string text = with_page(code, std::string(20, '#'));
  std::string quoted;
  for (const char byte : with_page(code, "\x01")) {
    if (byte == '\x01') {
      quoted += "%020lu";
      continue;
    }
    // Octal, with a backslash for each of two readers: eval's own and that of the command it makes. So nothing in the
    // code can end the string or be taken for a format.
    std::array<char, 8> octal;
    std::snprintf(octal.data(), octal.size(), "\\\\%03o", static_cast<unsigned char>(byte));
    quoted += octal.data();
  }
  // A script ends at its first error: nothing is asked of the program unless its text is in place. Signals that come
  // meanwhile are the program's.
  return "set print thread-events off\n"
         "set width 0\n"
         "set unwindonsignal on\n"
         "handle all nostop noprint pass\n"
         "handle SIGINT nostop noprint pass\n"
         "handle SIGSEGV SIGBUS SIGILL SIGFPE stop print\n"
         "set $page = ((unsigned long (*)(unsigned long, unsigned long, int, int, int, long)) " +
         hex(mmap_address) + ")(0, " + std::to_string(kPageBytes) + ", 3, 34, -1, 0)\n" + "eval \"set {char [" +
         std::to_string(text.size() + 1) + "]} %lu = \\\"" + quoted + "\\\"\", $page, $page\n" +
         "set $asked = ((int (*)(unsigned long, unsigned long)) " + hex(add_call_address) + ")(" + hex(run_address) +
         ", $page)\n" + "printf \"" + std::string(kDone) + "%d\\n\", $asked\n";
}

Asked::~Asked() {
  if (!file_.empty()) ::unlink(file_.c_str());
}

Result<Asked> run_in(const Process& process, const Python& python, const std::string& code) {
  // What is asked for so runs on the main thread only, and waits while that one waits: only where there is no better
  // way.
  if (!RemoteCalls::kIsAvailable && python.version.minor >= kFirstWithRemoteExec)
    return run_by_remote_exec(process, code);
  FL_TRY(const Addresses at, find_addresses(process, python));
  if constexpr (RemoteCalls::kIsAvailable) {
    FL_TRY_VOID(run_by_calls(process, at, code));
  } else {
    FL_TRY_VOID(run_by_gdb(process, python, at, code));
  }
  return Asked();
}

}  // namespace firelane::live
