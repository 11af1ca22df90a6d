// What firelane.profiler needs of a trace to fill torch's classes: rows of key_averages() and events.
// Private to the package: names and units follow torch's FunctionEvent, not ours.
#pragma once

#include <nanobind/nanobind.h>

#include "bind/trace/trace.h"

namespace firelane::bind_trace {

void bind_torch_events(nanobind::module_& module, nanobind::class_<Trace>& trace);

}  // namespace firelane::bind_trace
