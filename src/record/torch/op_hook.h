// Every op of every thread: one global RecordFunction callback, added on first use, then only
// switched off and on. Removing a callback while ops run is a known use-after-free in torch, and a
// callback that is off costs nothing.
#pragma once

#include <cstdint>

#include "record/core/call_lines.h"
#include "record/torch/script_stack.h"

namespace firelane::torch_hooks {

// What the callback looks at. The kinds are separate callbacks, so that plain recording does not
// make torch collect the inputs of every op.
enum class OpDetail : uint8_t { kPlain, kShapes, kShapesAndValues };

// Not thread-safe with respect to each other; ops may run on any thread at the same time.
struct Wanted {
  bool ops = true;
  bool ranges = true;
  bool tensors = false;  // with inputs: which tensors they are
  record::CallLines lines;
  ScriptDetail script;
};
void enable_op_hook(OpDetail detail, Wanted wanted = {});
void disable_op_hook() noexcept;

// In a forked child that still has the parent's hooks: removes them. The ops themselves call
// this, on the child's first op, where torch's lock is free.
void park_hooks_in_child() noexcept;
// True in a forked child until park_hooks_in_child().
bool hooks_are_inherited() noexcept;

}  // namespace firelane::torch_hooks
