// thread_stacks(), python_stacks() and Watchdog: what the threads of this process are doing, native frames included.
#pragma once

#include <nanobind/nanobind.h>

namespace firelane::bind_trace {

void bind_threads(nanobind::module_& module);

}  // namespace firelane::bind_trace
