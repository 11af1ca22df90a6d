// firelane.ranks: the traces of a distributed job.
#pragma once

#include <nanobind/nanobind.h>

namespace firelane::bind_trace {

void bind_ranks(nanobind::module_& module);

}  // namespace firelane::bind_trace
