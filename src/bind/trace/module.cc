// firelane._trace: reading traces from Python. Thin: names, types and lifetimes, no computing.
#include <nanobind/nanobind.h>

#include <nanobind/stl/string.h>

#include "always/why.h"
#include "bind/trace/compare.h"
#include "bind/trace/ranks.h"
#include "bind/trace/table.h"
#include "bind/trace/threads.h"
#include "bind/trace/trace.h"
#include "bind/trace/viewer.h"

namespace nb = nanobind;
using namespace nb::literals;

NB_MODULE(_trace, module) {
  module.doc() = "Reads traces of PyTorch programs; use it through `import firelane`.";
  module.attr("version") = FIRELANE_VERSION;
  nb::exception<firelane::bind_trace::TraceError>(module, "TraceError");
  firelane::bind_trace::bind_table(module);
  firelane::bind_trace::bind_trace(module);
  firelane::bind_trace::bind_viewer(module);
  firelane::bind_trace::bind_compare(module);
  firelane::bind_trace::bind_ranks(module);
  firelane::bind_trace::bind_threads(module);
  module.def(
      "why",
      [](const std::string& run, int64_t step) {
        const nb::gil_scoped_release released;
        firelane::Result<std::string> text = firelane::always::why(run, step);
        if (!text.ok()) throw firelane::bind_trace::TraceError(text.error().message);
        return std::move(text).value();
      },
      "run"_a, "step"_a = -1);
}
