#include "bind/trace/trace.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "advise/text.h"
#include "bind/trace/documents.h"
#include "bind/trace/queries.h"
#include "bind/trace/report_methods.h"
#include "bind/trace/table.h"
#include "bind/trace/torch_events.h"
#include "import/load.h"
#include "model/model.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

Trace open(const std::filesystem::path& path, const std::filesystem::path& execution_trace,
           const std::filesystem::path& snapshot, unsigned threads) {
  const nb::gil_scoped_release release_gil;
  return Trace(value_or_raise(importer::load_trace(
      path.string(),
      {.threads = threads, .execution_trace = execution_trace.string(), .snapshot = snapshot.string()})));
}

Table model_table(Trace& trace, size_t index) {
  const nb::gil_scoped_release release_gil;
  return {trace.tables->table(index)};
}

// Where the row's event lies in the source.
uint64_t source_of(const Model& model, const std::string& table, Py_ssize_t row) {
  const ColumnFor<uint64_t, Use::kSource>* sources = table == "host_slices"     ? &model.host_slices.source
                                                     : table == "device_slices" ? &model.device_slices.source
                                                     : table == "memory_events" ? &model.memory_events.source
                                                     : table == "instants"      ? &model.instants.source
                                                                                : nullptr;
  if (!sources) {
    throw nb::value_error("args: the table is one of host_slices, device_slices, memory_events, instants");
  }
  if (row < 0 || static_cast<size_t>(row) >= sources->size()) throw nb::index_error("row out of range");
  return (*sources)[static_cast<size_t>(row)];
}

nb::object args(const Trace& trace, const std::string& table, Py_ssize_t row) {
  const uint64_t source = source_of(*trace.model, table, row);
  if (!trace.model->args || source == kNoSource) return nb::dict();
  std::string json;
  {
    const nb::gil_scoped_release release_gil;
    json = value_or_raise(trace.model->args->event_json(source));
  }
  return parse_json(json).attr("get")("args", nb::dict());
}

std::string trace_repr(const Trace& trace) {
  const Model& model = *trace.model;
  const auto counted = [](size_t count, const char* one, const char* many) {
    return advise::counted(static_cast<int64_t>(count), one, many);
  };
  return "<firelane.Trace " + nb::cast<std::string>(nb::repr(nb::cast(model.info.path))) + ": " +
         counted(model.host_slices.size(), "host slice, ", "host slices, ") +
         counted(model.device_slices.size(), "device slice, ", "device slices, ") +
         counted(model.steps.size(), "step>", "steps>");
}

}  // namespace

nb::object parse_json(const std::string& text) { return nb::module_::import_("json").attr("loads")(text); }

void bind_trace(nb::module_& module) {
  nb::class_<Trace> cls(module, "Trace", nb::is_final(),
                        "An open trace: tables named as in docs/python.md, and the answers of the command line.\n"
                        "Times are in ns since the start of the trace; columns that name rows count from 0.");
  for (size_t i = 0; i < exporter::arrow_table_list().size(); ++i) {
    const exporter::ArrowTableInfo& table = exporter::arrow_table_list()[i];
    cls.def_prop_ro(table.name.c_str(), [i](Trace& trace) { return model_table(trace, i); }, table.meaning.c_str());
  }
  cls.def("args", &args, nb::arg("table"), nb::arg("row"),
          nb::sig("def args(self, table: typing.Literal['host_slices', 'device_slices', 'memory_events', 'instants'], "
                  "row: int) -> dict[str, typing.Any]"),
          "The args of one event as the source has them; the file is read again for it.");
  cls.def("__repr__", &trace_repr);
  bind_report_methods(cls);
  bind_queries(cls);
  bind_documents(module, cls);
  bind_torch_events(module, cls);

  module.def("open", &open, nb::arg("path"), nb::kw_only(), nb::arg("execution_trace") = "", nb::arg("snapshot") = "",
             nb::arg("threads") = 0,
             nb::sig("def open(path: str | os.PathLike[str], *, execution_trace: str | os.PathLike[str] = '', "
                     "snapshot: str | os.PathLike[str] = '', threads: int = 0) -> Trace"),
             "Opens a trace: .lane, .json or .json.gz (Kineto or Chrome). threads=0 uses every core.\n"
             "execution_trace and snapshot are joined to it: what ExecutionTraceObserver and\n"
             "torch.cuda.memory._dump_snapshot wrote in the same run.\n"
             "Raises TraceError, with one line that says what is wrong, when nothing can be read.");
}

}  // namespace firelane::bind_trace
