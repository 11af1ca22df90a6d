// Verdict and what stands behind it, as methods of firelane.Trace.
#pragma once

#include <nanobind/nanobind.h>

#include "bind/trace/trace.h"

namespace firelane::bind_trace {

void bind_studies(nanobind::class_<Trace>& trace);

}  // namespace firelane::bind_trace
