// What the command line's verbs answer, as methods of firelane.Trace.
#pragma once

#include <nanobind/nanobind.h>

#include "bind/trace/trace.h"

namespace firelane::bind {

void bind_answers(nanobind::class_<Trace>& trace);

}  // namespace firelane::bind
