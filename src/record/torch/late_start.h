// Starts what has to wait until the program itself has started something (CUDA): at the first op after that.
//
//   begin_when(is_cuda_started, [&] { ... });   // asks at each op, on the op's thread; begins once
//   forget_late_start();                        // before what it refers to is destroyed
//
// Asked by a callback of its own, which is on only while something waits: other recordings pay nothing for it.
#pragma once

#include <functional>

namespace firelane::torch_hooks {

// `is_ready` is cheap and takes no lock. One thing waits at a time: a new one replaces the old.
void begin_when(bool (*is_ready)() noexcept, std::function<void()> begin);
// It is not running and will not run when this returns. Not to be called from inside `begin`.
void forget_late_start() noexcept;

}  // namespace firelane::torch_hooks
