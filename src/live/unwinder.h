// Walks native stacks of another process from a copy of its registers and its stack, by the tables that compilers leave
// in libraries for exceptions (.eh_frame).
//
// elfutils' libdw reads those tables; it is looked for at run time ("libdw.so.1", Debian's libdw1), so that the program
// works where it is not installed. Nothing is stopped: who calls has the registers and the stack already.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "live/memory.h"
#include "live/process.h"

namespace firelane::live {

// For x86-64, numbered as in DWARF.
struct Registers {
  static constexpr size_t kCount = 17;
  static constexpr size_t kFramePointer = 6;
  static constexpr size_t kStackPointer = 7;
  static constexpr size_t kInstruction = 16;

  std::array<uint64_t, kCount> values{};
  uint32_t known = 0;  // a bit each

  void set(size_t number, uint64_t value) {
    values[number] = value;
    known |= 1u << number;
  }
  bool knows(size_t number) const { return (known >> number & 1) != 0; }
};

// A copy of a stack from its pointer on. One of a thread that holds still is read further where it is not long enough.
struct StackCopy {
  uint64_t start = 0;
  std::vector<uint8_t> bytes;
  const Memory* more = nullptr;  // null: what is there is all

  // For memory that does not change.
  static StackCopy of(const Memory& memory, uint64_t start);

  bool read_word(uint64_t address, uint64_t& out);
};

// Whether libdw is there. It is loaded by the first call, and by Unwinder::open() without one: for who may not be able
// to load libraries later.
bool load_libdw();

struct NativeStack {
  // Innermost first. Of callers the last byte of the call, so that it lies in the calling function.
  std::vector<uint64_t> addresses;
  bool is_whole = false;  // no frame was refused
};

class Unwinder {
 public:
  // An Error where libdw is not installed, and on processors other than x86-64.
  static Result<Unwinder> open(const Process& process);
  Unwinder(Unwinder&&) noexcept;
  Unwinder& operator=(Unwinder&&) noexcept;
  ~Unwinder();

  NativeStack unwind(const Registers& registers, StackCopy& stack);

 private:
  struct State;
  explicit Unwinder(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace firelane::live
