// Trace.report() and Trace.view(): the trace as one document, in a file, as text, or in a notebook.
#pragma once

#include <nanobind/nanobind.h>

#include "bind/trace/trace.h"

namespace firelane::bind_trace {

void bind_documents(nanobind::module_& module, nanobind::class_<Trace>& trace);

}  // namespace firelane::bind_trace
