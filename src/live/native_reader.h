// Native stacks of another process's threads, with names: of those that wait from their stack's memory, which holds
// still then, and of those that run from what the kernel copies (thread_samples.h).
//
// /proc/PID/task/TID/syscall has the stack pointer and the instruction of a thread that waits, and no other register.
// Callers' registers lie on the stack, where functions save them, so that is enough but for frames whose place is
// given by the frame pointer while nobody below has saved it: that is searched for then.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "live/memory.h"
#include "live/merged_stack.h"
#include "live/process.h"
#include "live/symbols.h"
#include "live/unwinder.h"

namespace firelane::live {

// Where a thread waits; two of the same thread are equal if it has not gone on, or has come back to the same place.
struct WaitPlace {
  int64_t call = -1;  // the system call's number; -1: in none (a page that is loaded)
  uint64_t stack_pointer = 0;
  uint64_t instruction = 0;

  bool operator==(const WaitPlace&) const = default;
};

// The text of /proc/PID/task/TID/syscall; false for a thread that runs, and for anything else.
bool parse_wait_place(std::string_view text, WaitPlace& out);

struct NamedStack {
  std::vector<NativeFrame> frames;  // innermost first; functions are those of NativeReader::functions()
  bool is_whole = false;
};

class NativeReader {
 public:
  // `python_image`: the file that holds the interpreter; "" for none.
  static Result<NativeReader> open(const Process& process, std::string python_image);

  // Threads of the process, by id.
  std::vector<pid_t> threads() const;

  // False if it runs, or the system does not say.
  bool where_waits(pid_t thread, WaitPlace& out) const;

  NamedStack stack_at(const WaitPlace& place);
  NamedStack stack_of(const Registers& registers, StackCopy& stack);

  const std::vector<NativeFunction>& functions() const { return functions_; }

  // Looks for libraries that were loaded meanwhile, if an address was in none; at most once a second.
  void refresh();

 private:
  NativeReader(const Process& process, std::string python_image, Unwinder unwinder);

  NamedStack named(const NativeStack& walked);
  void find_frame_pointer(Registers& registers, StackCopy& stack, NamedStack& found);
  uint32_t function_at(uint64_t address);

  Process process_;
  std::string python_image_;
  Memory memory_;
  Unwinder unwinder_;
  Symbols symbols_;
  std::string program_name_;
  std::unordered_map<uint64_t, uint32_t> by_address_;
  std::map<std::pair<std::string, std::string>, uint32_t> ids_;  // by name and library
  std::vector<NativeFunction> functions_;
  bool has_strange_ = false;  // an address was in no file
  std::chrono::steady_clock::time_point refreshed_;
};

}  // namespace firelane::live
