// Trace.sql() and Trace.export().
#pragma once

#include <nanobind/nanobind.h>

#include "bind/trace/trace.h"

namespace firelane::bind_trace {

void bind_queries(nanobind::class_<Trace>& trace);

}  // namespace firelane::bind_trace
