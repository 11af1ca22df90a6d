// firelane.Trace: one open trace, its tables and the answers of the CLI's verbs.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>

namespace firelane::bind {

// Becomes firelane.TraceError. The only exception of ours: everything below returns Result.
struct TraceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void bind_trace(nanobind::module_& module);

}  // namespace firelane::bind
