// firelane._trace.Viewer: what the viewer's page asks about one trace, answered without HTTP; and the page's files.
// The TensorBoard plugin passes requests on to it.
#pragma once

#include <nanobind/nanobind.h>

namespace firelane::bind_trace {

void bind_viewer(nanobind::module_& module);

}  // namespace firelane::bind_trace
