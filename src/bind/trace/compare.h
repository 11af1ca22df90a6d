// firelane.compare and firelane.gate: several traces at once.
#pragma once

#include <nanobind/nanobind.h>

namespace firelane::bind_trace {

void bind_compare(nanobind::module_& module);

}  // namespace firelane::bind_trace
