// Which line of a Python program called an operator: how a hook that knows no Python asks for it.
//
// The functions are called inside the user's operators, with or without the GIL, on any thread. None throws or waits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace firelane::record {

struct CallLines {
  // A number that stands for the line, 0 if there is none. `position`: where in Python the thread was when it called
  // the operator around this one, 0 if there is none; becomes where it is now. In the same place, 0: an operator that
  // another one calls has that one's line.
  uint64_t (*find)(uint64_t& position) noexcept = nullptr;
  // What find() found last on this thread, innermost first: the line of an installed package, if the program called the
  // operator through one, the program's line, and the one that called its function: "model.py(41): Net.forward;
  // train.py(9): main".
  size_t (*describe)(char* text, size_t size) noexcept = nullptr;
};

}  // namespace firelane::record
