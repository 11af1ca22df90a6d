// The reports of report/registry.h as methods of firelane.Trace: their names, signatures, docstrings and checks are
// made from what each report declares.
#pragma once

#include <nanobind/nanobind.h>

#include "bind/trace/trace.h"

namespace firelane::bind_trace {

void bind_report_methods(nanobind::class_<Trace>& trace);

}  // namespace firelane::bind_trace
