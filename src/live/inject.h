// Runs a line of Python in a program that runs already, on its main thread between two of its own bytecodes.
//
// Two functions are called in the program, and it is let go: mmap for room for the text, and Py_AddPendingCall with
// PyRun_SimpleString and that text. Neither needs the GIL, an import lock or malloc, any of which the thread that was
// stopped may hold; Python itself then calls when it is safe. On x86-64 we make these calls ourselves
// (remote_call.h), elsewhere gdb does. Addresses come from the files' symbol tables, so that gdb reads none of the
// symbols of torch's libraries, which would take minutes. Python 3.14 and later have sys.remote_exec, which the
// program's own interpreter calls for us: used where gdb would be, as it does not wake a main thread that waits.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "live/process.h"
#include "live/python.h"

namespace firelane::live {

// A program that was asked to run code. Keep it until the code has run, or nobody waits for it any more.
class Asked {
 public:
  explicit Asked(std::string file = "") : file_(std::move(file)) {}
  Asked(Asked&& other) noexcept : file_(std::exchange(other.file_, {})) {}
  Asked& operator=(Asked&&) = delete;
  ~Asked();  // removes the file that the code is read from, where there is one

 private:
  std::string file_;
};

// `code` must not raise; the text "@PAGE@" in it becomes the address of the text itself, in 20 digits, which it should
// unmap (kPageBytes) when it has run, or 0. Returns when the program has been asked; it runs the code a little later.
Result<Asked> run_in(const Process& process, const Python& python, const std::string& code);

inline constexpr int kPageBytes = 8192;

// Of what gdb or Python wrote, the line that says what went wrong; for tests.
std::string complaint_of(const std::string& output);

// gdb's commands for it, for tests.
std::string gdb_script(uint64_t mmap_address, uint64_t add_call_address, uint64_t run_address, const std::string& code);

}  // namespace firelane::live
