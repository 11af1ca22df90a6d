// Another process, as /proc shows it: whose it is, what it has mapped, and why nobody may look into it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firelane::live {

struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;
  std::string path;      // as the process sees it
  bool is_code = false;  // may be executed
};

struct Process {
  pid_t pid = 0;
  uid_t user = 0;                 // the effective one
  char state = '?';               // R, S, D, T, t, Z, X
  pid_t tracer = 0;               // a debugger's process; 0: none
  std::string command;            // its words, separated by spaces
  std::string program;            // the executable's path
  std::vector<Mapping> mappings;  // of files, by address

  // The first mapping of the file whose name (without folder) begins with `prefix`; null if there is none.
  const Mapping* find_file(std::string_view prefix) const;
  // Where this process can read a file of that process: through its root folder where that is another.
  std::string readable_path(const std::string& path) const;
};

// An Error that begins with the pid: no such process, it has ended, it is another user's.
Result<Process> look_at(pid_t pid);

// Whether paths mean the same in both processes: false for one in another container.
bool shares_files(pid_t pid);

// Whether this process may look into that one, as a debugger may; the Error says what forbids it and what helps.
Result<void> may_trace(const Process& process);

// What the process has mapped of files now, by address. Empty when it is gone.
std::vector<Mapping> mappings_of(pid_t pid);

// "/proc/77/NAME" as text; "" if it cannot be read.
std::string read_proc(pid_t pid, std::string_view name);

}  // namespace firelane::live
