// Python's frames and native ones of a thread as one stack.
//
// A call of Python's evaluation loop is one native frame and runs one Python frame or, from 3.11 on, several: the
// outermost of each is marked (Frame::is_entry). So the loop's frames say where Python's belong. The loop itself, and
// the interpreter's own functions between two Python frames, are left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "live/stack_reader.h"

namespace firelane::live {

struct NativeFrame {
  uint32_t function = 0;        // as it is to stand in the merged stack
  bool is_python = false;       // of the interpreter's own code
  bool is_interpreter = false;  // the evaluation loop
  bool is_start = false;        // of the C library or the program itself: how threads begin

  bool operator==(const NativeFrame&) const = default;
};

struct MergedStack {
  std::vector<Frame> frames;  // innermost first
  // Whether each call of the loop has its Python frames. Else the native frames inside of the innermost Python frame
  // are there, and then Python's alone: the stack could not be walked to its end, or the thread went on between two
  // reads.
  bool fits = true;
};

// Both innermost first. `is_whole`: the native stack was walked to its end.
MergedStack merge(std::span<const Frame> python, std::span<const NativeFrame> native, bool is_whole);

}  // namespace firelane::live
