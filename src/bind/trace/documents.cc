#include "bind/trace/documents.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bind/trace/file_sink.h"
#include "report/trace_report.h"
#include "serve/api.h"
#include "serve/one_file.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

// A notebook keeps what it shows in its own file, and sends it through its server.
constexpr size_t kMaxNotebookBytes = 2'000'000;

std::string markdown(const StudiedTrace& trace) {
  const std::string& path = trace.model().info.path;
  return report::markdown(trace, report::trace_report(trace, path.substr(path.rfind('/') + 1)));
}

std::string html_page(const std::shared_ptr<const StudiedTrace>& trace, size_t max_bytes = serve::kMaxOneFileBytes) {
  const std::string_view empty = value_or_raise(serve::one_file_page());
  serve::Api api(std::make_shared<TraceSet>(trace), FIRELANE_VERSION);
  return value_or_raise(serve::one_file(api, empty, max_bytes));
}

std::optional<std::string> report(const Trace& trace, const std::optional<std::filesystem::path>& path, bool force) {
  const nb::gil_scoped_release release_gil;
  if (!path) return markdown(*trace.studied);
  const std::string ending = path->extension().string();
  const bool is_html = ending == ".html" || ending == ".htm";
  if (!is_html && ending != ".md" && ending != ".markdown") {
    throw TraceError(path->string() + ": a report is HTML or Markdown; name it report.html or report.md");
  }
  FileSink sink(*path, force);
  sink.write(is_html ? html_page(trace.studied) : markdown(*trace.studied));
  sink.finish();
  return std::nullopt;
}

// The value of an attribute, in its double quotes.
std::string attribute_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out + '"';
}

// What a notebook draws: the report in a frame that may run its own scripts and nothing else. No server, so it works
// wherever the notebook is.
struct View {
  std::shared_ptr<const StudiedTrace> trace;
  int height;

  std::string html() const {
    const nb::gil_scoped_release release_gil;
    return "<iframe title=\"Firelane\" sandbox=\"allow-scripts\" width=\"100%\" height=\"" + std::to_string(height) +
           "\" style=\"border: 0\" srcdoc=" + attribute_text(html_page(trace, kMaxNotebookBytes)) + "></iframe>";
  }
};

View view(const Trace& trace, int height) {
  if (height <= 0) throw nb::value_error("view: the height is a number of pixels above 0");
  return {trace.studied, height};
}

// Outside of notebooks: the command that opens the same trace.
std::string view_text(const View& view) {
  const nb::object quote = nb::module_::import_("shlex").attr("quote");
  return "firelane view " + nb::cast<std::string>(quote(nb::cast(view.trace->model().info.path)));
}

}  // namespace

void bind_documents(nb::module_& module, nb::class_<Trace>& trace) {
  nb::class_<View>(module, "View", nb::is_final(), "What Trace.view() gives: a notebook draws it.")
      .def("_repr_html_", &View::html)
      .def("__repr__", &view_text);
  trace.def(
      "report", &report, nb::arg("path") = nb::none(), nb::kw_only(), nb::arg("force") = false,
      nb::sig("def report(self, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> str | None"),
      "The verdict and everything behind it in one document: the viewer for a path that ends in .html,\n"
      "Markdown for .md, and the Markdown itself without a path. An existing file is replaced only with force=True.");
  trace.def("view", &view, nb::kw_only(), nb::arg("height") = 600,
            "In a notebook: the viewer, in the output of the cell, with what is in a report. Elsewhere it says which\n"
            "command opens the whole trace.");
}

}  // namespace firelane::bind_trace
