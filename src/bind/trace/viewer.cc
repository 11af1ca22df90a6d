#include "bind/trace/viewer.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/trace/trace.h"
#include "import/load.h"
#include "serve/api.h"
#include "serve/pages.h"
#include "serve/request.h"
#include "traces/trace_set.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

nb::bytes as_bytes(std::string_view bytes) { return nb::bytes(bytes.data(), bytes.size()); }

class Viewer {
 public:
  explicit Viewer(const std::filesystem::path& path)
      : traces_(std::make_shared<TraceSet>(
            std::vector{path.string()},
            [](const std::string& file, const LoadProgress& progress) {
              return importer::load_trace(file, {.progress = progress});
            },
            serve::prepare)),
        api_(traces_, FIRELANE_VERSION) {}

  explicit Viewer(const Trace& trace)
      : traces_(std::make_shared<TraceSet>(trace.studied)), api_(traces_, FIRELANE_VERSION) {}

  // Waits for a trace that is still being loaded: reading cannot be stopped half-way.
  ~Viewer() {
    const nb::gil_scoped_release release_gil;
    traces_->wait_until_loaded();
  }

  std::tuple<int, std::string, nb::bytes> answer(const std::string& method, const std::string& target,
                                                 const nb::bytes& body) {
    const std::string text(body.c_str(), body.size());
    const serve::Answer answer = [&] {
      const nb::gil_scoped_release release_gil;
      Result<serve::Request> request = serve::parse_target(target);
      if (!request.ok()) return serve::refusal(400, request.error().message);
      request.value().method = method;
      request.value().body = text;
      return api_.answer(request.value());
    }();
    return {answer.status, std::string(answer.type), as_bytes(answer.body)};
  }

  void wait() {
    const nb::gil_scoped_release release_gil;
    const std::lock_guard lock(waiting_);
    traces_->wait_until_loaded();
  }

 private:
  std::shared_ptr<TraceSet> traces_;
  serve::Api api_;
  std::mutex waiting_;  // one thread joins the loading one
};

std::vector<std::string> page_names() {
  std::vector<std::string> names;
  for (const serve::Page& page : serve::all_pages()) names.emplace_back(page.name);
  return names;
}

std::optional<std::tuple<std::string, nb::bytes>> page_file(const std::string& name) {
  const serve::Page* found = serve::find_page(name);
  if (found == nullptr) return std::nullopt;
  return std::tuple{std::string(found->type), as_bytes(found->bytes)};
}

}  // namespace

void bind_viewer(nb::module_& module) {
  nb::class_<Viewer>(module, "Viewer", nb::is_final(),
                     "Answers what the viewer asks about one trace, its number 0: docs/viewer-protocol.md.\n"
                     "A path is loaded in the background. Any number of threads may ask at once.")
      .def(nb::init<const Trace&>(), nb::arg("trace"))
      .def(nb::init<const std::filesystem::path&>(), nb::arg("path"),
           nb::sig("def __init__(self, path: str | os.PathLike[str]) -> None"))
      .def("answer", &Viewer::answer, nb::arg("method"), nb::arg("target"), nb::arg("body") = nb::bytes("", 0),
           "Status, content type and body for a request such as 'GET', '/api/t/0/overview'.")
      .def("wait", &Viewer::wait, "Returns when the trace is loaded, or has failed to.");
  module.def("page_names", &page_names,
             "The files of the viewer's page; none where the module was built without the viewer.");
  module.def("page", &page_file, nb::arg("name"), "Content type and bytes of one of the page's files.");
}

}  // namespace firelane::bind_trace
