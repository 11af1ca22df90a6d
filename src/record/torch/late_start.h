// What can only begin once the program has started something itself (CUDA): begun at the first op after that.
//
//   begin_when(is_cuda_started, [&] { ... });   // asks at each op, on the op's thread; begins once
//   forget_late_start();                        // before what it refers to goes
//
// Asked by a callback of its own, which is on only while something waits: other recordings pay nothing for it.
#pragma once

#include <functional>

namespace firelane::torch_hooks {

// `is_ready` is cheap and takes no lock. One thing waits at a time: a new one takes the place of the old.
void begin_when(bool (*is_ready)() noexcept, std::function<void()> begin);
// It neither runs nor will run when this returns; not from inside of `begin`.
void forget_late_start() noexcept;

}  // namespace firelane::torch_hooks
