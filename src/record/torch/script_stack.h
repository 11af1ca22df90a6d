// Where a TorchScript program is: the lines and modules that its interpreter, on this thread, is in.
#pragma once

#include "record/core/thread_buffer.h"

namespace firelane::torch_hooks {

struct ScriptDetail {
  bool lines = false;
  bool modules = false;
};

// Adds both, as far as asked for, to the op that was begun last. Costs microseconds: for ops inside TorchScript only.
void attach_script_stack(record::ThreadBuffer* b, ScriptDetail detail) noexcept;

}  // namespace firelane::torch_hooks
