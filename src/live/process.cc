#include "live/process.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

namespace firelane::live {

namespace {

namespace fs = std::filesystem;

fs::path proc(pid_t pid, std::string_view name) { return fs::path("/proc") / std::to_string(pid) / name; }

// The value of "Name:\tVALUE" in /proc/PID/status.
std::string field_of(const std::string& status, const std::string& name) {
  const size_t at = status.find("\n" + name + ":\t");
  if (at == std::string::npos) return {};
  const size_t begin = at + name.size() + 3;
  return status.substr(begin, status.find('\n', begin) - begin);
}

std::string user_name(uid_t user) {
  const struct passwd* entry = ::getpwuid(user);
  return entry != nullptr ? entry->pw_name : std::to_string(user);
}

// "start-end perms offset device inode   path"
std::vector<Mapping> parse_maps(const std::string& text) {
  std::vector<Mapping> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t path = line.find('/');
    if (path == std::string::npos) continue;
    Mapping mapping{.path = line.substr(path)};
    if (mapping.path.ends_with(" (deleted)")) mapping.path.resize(mapping.path.size() - 10);
    std::from_chars(line.data(), line.data() + line.size(), mapping.start, 16);
    std::from_chars(line.data() + line.find('-') + 1, line.data() + line.size(), mapping.end, 16);
    const size_t permissions = line.find(' ') + 1;
    mapping.is_code = line.compare(permissions + 2, 1, "x") == 0;
    const size_t offset = line.find(' ', permissions) + 1;
    std::from_chars(line.data() + offset, line.data() + line.size(), mapping.file_offset, 16);
    out.push_back(std::move(mapping));
  }
  return out;
}

// Not by a stream: a file of a process that ends meanwhile cannot be read any more, which streams answer by throwing.
std::string read_file(const fs::path& path) {
  std::string out;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return out;
  std::array<char, 16384> bytes;
  for (;;) {
    const ssize_t count = ::read(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    out.append(bytes.data(), static_cast<size_t>(count));
  }
  ::close(file);
  return out;
}

// As PTRACE_ATTACH would be answered. PTRACE_SEIZE stops nothing, and the end of the child that asks takes it back.
int errno_of_tracing(pid_t pid) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? 0 : errno);
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

}  // namespace

std::vector<Mapping> mappings_of(pid_t pid) { return parse_maps(read_proc(pid, "maps")); }

std::string read_proc(pid_t pid, std::string_view name) { return read_file(proc(pid, name)); }

const Mapping* Process::find_file(std::string_view prefix) const {
  const auto found = std::find_if(mappings.begin(), mappings.end(), [&](const Mapping& mapping) {
    return std::string_view(mapping.path).substr(mapping.path.rfind('/') + 1).starts_with(prefix);
  });
  return found == mappings.end() ? nullptr : &*found;
}

std::string Process::readable_path(const std::string& path) const {
  // Also for a program that was replaced on disk since it was started.
  if (path == program) return proc(pid, "exe").string();
  return shares_files(pid) ? path : proc(pid, "root").string() + path;
}

Result<Process> look_at(pid_t pid) {
  const std::string name = std::to_string(pid);
  const std::string status = read_proc(pid, "status");
  if (pid <= 0 || status.empty()) return Error{name + ": no such process"};
  if (field_of(status, "Tgid") != name) {
    return Error{name + ": a thread of process " + field_of(status, "Tgid") + "; give that number"};
  }
  Process out{.pid = pid};
  const std::string state = field_of(status, "State");
  out.state = state.empty() ? '?' : state[0];
  if (out.state == 'Z' || out.state == 'X') return Error{name + ": the program has ended"};
  std::istringstream(field_of(status, "TracerPid")) >> out.tracer;
  uid_t real = 0;
  std::istringstream(field_of(status, "Uid")) >> real >> out.user;
  out.command = read_proc(pid, "cmdline");
  while (!out.command.empty() && out.command.back() == '\0') out.command.pop_back();
  std::ranges::replace(out.command, '\0', ' ');
  if (out.command.empty()) return Error{name + ": a thread of the kernel, not a program"};
  std::error_code error;
  out.program = fs::read_symlink(proc(pid, "exe"), error).string();
  if (out.program.ends_with(" (deleted)")) out.program.resize(out.program.size() - 10);
  out.mappings = mappings_of(pid);
  if (error || out.mappings.empty()) {
    if (::kill(pid, 0) != 0 && errno == ESRCH) return Error{name + ": the program has ended"};
    if (out.user != ::geteuid())
      return Error{name + ": belongs to user " + user_name(out.user) + "; run this as that user, or with sudo"};
    return Error{name + ": may not be looked at (it is not dumpable, or protected by its container)" +
                 (::geteuid() == 0 ? "" : "; try sudo")};
  }
  return out;
}

bool shares_files(pid_t pid) {
  struct stat own{};
  struct stat other{};
  if (::stat("/proc/self/ns/mnt", &own) != 0 || ::stat(proc(pid, "ns/mnt").c_str(), &other) != 0) return true;
  return own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

Result<void> may_trace(const Process& process) {
  const std::string name = std::to_string(process.pid);
  const int why = errno_of_tracing(process.pid);
  if (why == ESRCH) return Error{name + ": the program has ended"};
  if (why != EPERM && why != EACCES) return {};
  if (process.tracer != 0) {
    std::string debugger = read_proc(process.tracer, "comm");
    debugger = debugger.substr(0, debugger.find('\n'));
    return Error{name + ": " + debugger + " (process " + std::to_string(process.tracer) +
                 ") is attached to it; one at a time"};
  }
  if (process.user != ::geteuid())
    return Error{name + ": belongs to user " + user_name(process.user) + "; run this as that user, or with sudo"};
  const std::string scope = read_file("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope.empty() && scope[0] != '0') {
    return Error{name + ": this system lets only a program's parent look into it (kernel.yama.ptrace_scope is " +
                 scope.substr(0, 1) + "); use sudo, or sysctl kernel.yama.ptrace_scope=0"};
  }
  return Error{name + ": not permitted; in a container, start it with --cap-add=SYS_PTRACE"};
}

}  // namespace firelane::live
