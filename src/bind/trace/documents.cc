#include "bind/trace/documents.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

std::string html_page(const std::shared_ptr<const StudiedTrace>& trace, size_t max_bytes) {
  const std::string_view empty = value_or_raise(serve::one_file_page());
  serve::Api api(std::make_shared<TraceSet>(trace), FIRELANE_VERSION);
  return value_or_raise(serve::one_file(api, empty, max_bytes));
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

std::string html_of(const View& view) {
  const nb::gil_scoped_release release_gil;
  return "<iframe title=\"Firelane\" sandbox=\"allow-scripts\" width=\"100%\" height=\"" + std::to_string(view.height) +
         "\" style=\"border: 0\" srcdoc=" + attribute_text(view.page(kMaxNotebookBytes)) + "></iframe>";
}

std::string text_of(const View& view) {
  const nb::object quote = nb::module_::import_("shlex").attr("quote");
  std::string out = "firelane";
  for (const std::string& word : view.command) out += " " + nb::cast<std::string>(quote(nb::cast(word)));
  return out;
}

}  // namespace

std::optional<std::string> write_document(const std::optional<std::filesystem::path>& path, bool force,
                                          const MakePage& page, const MakeMarkdown& markdown) {
  const nb::gil_scoped_release release_gil;
  if (!path) return markdown();
  const std::string ending = path->extension().string();
  const bool is_html = ending == ".html" || ending == ".htm";
  if (!is_html && ending != ".md" && ending != ".markdown") {
    throw TraceError(path->string() + ": a report is HTML or Markdown; name it report.html or report.md");
  }
  FileSink sink(*path, force);
  sink.write(is_html ? page(serve::kMaxOneFileBytes) : markdown());
  sink.finish();
  return std::nullopt;
}

View make_view(MakePage page, std::vector<std::string> command, int height) {
  if (height <= 0) throw nb::value_error("view: the height is a number of pixels above 0");
  return {std::move(page), std::move(command), height};
}

void bind_documents(nb::module_& module, nb::class_<Trace>& trace) {
  nb::class_<View>(module, "View", nb::is_final(), "What view() gives: a notebook draws it.")
      .def("_repr_html_", &html_of)
      .def("__repr__", &text_of);
  trace.def(
      "report",
      [](const Trace& self, const std::optional<std::filesystem::path>& path, bool force) {
        return write_document(
            path, force, [&](size_t max_bytes) { return html_page(self.studied, max_bytes); },
            [&] { return markdown(*self.studied); });
      },
      nb::arg("path") = nb::none(), nb::kw_only(), nb::arg("force") = false,
      nb::sig("def report(self, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> str | None"),
      "The verdict and everything behind it in one document: the viewer for a path that ends in .html,\n"
      "Markdown for .md, and the Markdown itself without a path. An existing file is replaced only with force=True.");
  trace.def(
      "view",
      [](const Trace& self, int height) {
        return make_view([studied = self.studied](size_t max_bytes) { return html_page(studied, max_bytes); },
                         {"view", self.studied->model().info.path}, height);
      },
      nb::kw_only(), nb::arg("height") = 600,
      "In a notebook: the viewer, in the output of the cell, with what is in a report. Elsewhere it says which\n"
      "command opens the whole trace.");
}

}  // namespace firelane::bind_trace
