#include "bind/trace/table.h"

#include <nanobind/stl/string.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "bind/trace/report_table.h"
#include "report/html.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

// How many rows of the trace's own tables, and of an answer, are printed at most.
constexpr size_t kShownRows = 10;
constexpr size_t kShownAnswers = 100;

// A capsule that owns an Arrow struct: releases what no consumer has taken.
template <typename Struct>
nb::object capsule(Struct* filled, const char* name) {
  PyObject* made = PyCapsule_New(filled, name, [](PyObject* self) {
    auto* it = static_cast<Struct*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    if (it->release) it->release(it);
    delete it;
  });
  if (!made) nb::raise_python_error();
  return nb::steal(made);
}

nb::object stream_capsule(const Table& table) {
  auto* stream = new ArrowArrayStream;
  exporter::export_stream(table.arrow, stream);
  return capsule(stream, "arrow_array_stream");
}

nb::object schema_capsule(const Table& table) {
  auto* schema = new ArrowSchema;
  exporter::export_schema(table.arrow, schema);
  return capsule(schema, "arrow_schema");
}

nb::object to_python(const exporter::ArrowCell& cell) {
  return std::visit(
      [](const auto& value) -> nb::object {
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nb::none();
        } else if constexpr (std::is_same_v<T, std::string_view>) {
          return nb::str(value.data(), value.size());
        } else {
          return nb::cast(value);
        }
      },
      cell);
}

nb::dict row_dict(const Table& table, Py_ssize_t row) {
  const auto rows = static_cast<Py_ssize_t>(table.arrow->rows());
  if (row < 0) row += rows;
  if (row < 0 || row >= rows) throw nb::index_error("row out of range");
  nb::dict dict;
  const auto& columns = table.arrow->columns();
  for (size_t i = 0; i < columns.size(); ++i) {
    dict[columns[i].name.c_str()] = to_python(table.arrow->cell(i, static_cast<size_t>(row)));
  }
  return dict;
}

nb::list column_names(const Table& table) {
  nb::list names;
  for (const exporter::ArrowColumn& column : table.arrow->columns()) names.append(column.name.c_str());
  return names;
}

std::string text(const Table& table) {
  if (table.shown) return table.shown->text;
  return report::render(first_rows(*table.arrow, kShownRows), report::Form::kText);
}

std::string repr_html(const Table& table) {
  if (table.shown) return report::html(table.shown->report, {.max_rows = kShownAnswers});
  return report::html({.tables = {first_rows(*table.arrow, kShownRows)}});
}

std::string table_repr(const Table& table) {
  const exporter::ArrowTable& arrow = *table.arrow;
  return "<firelane.Table " + arrow.name() + ": " + std::to_string(arrow.rows()) + " rows, " +
         std::to_string(arrow.columns().size()) + " columns>";
}

}  // namespace

void bind_table(nb::module_& module) {
  nb::class_<Table>(module, "Table", nb::is_final(),
                    "A table of a trace. pandas, polars, DuckDB and pyarrow take it as it is, without a copy:\n"
                    "pd.DataFrame.from_arrow(table), pl.DataFrame(table), duckdb.sql('from table'), pa.table(table).")
      .def_prop_ro("name", [](const Table& t) { return t.arrow->name(); })
      .def_prop_ro("column_names", &column_names, nb::sig("def column_names(self) -> list[str]"))
      .def("__len__", [](const Table& t) { return t.arrow->rows(); })
      .def("__getitem__", &row_dict, nb::arg("row"),
           nb::sig("def __getitem__(self, row: int, /) -> dict[str, typing.Any]"),
           "One row as a dict; texts as str, absent values as None.")
      .def(
          "__iter__", [](nb::handle self) { return nb::steal(PySeqIter_New(self.ptr())); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[dict[str, typing.Any]]"))
      .def(
          "__arrow_c_stream__", [](const Table& t, const nb::object&) { return stream_capsule(t); },
          nb::arg("requested_schema") = nb::none(),
          nb::sig("def __arrow_c_stream__(self, requested_schema: object | None = None) -> object"),
          "The Arrow PyCapsule interface. The columns' memory outlives the table and its trace.")
      .def("__arrow_c_schema__", &schema_capsule, nb::sig("def __arrow_c_schema__(self) -> object"))
      .def("_repr_html_", &repr_html)
      .def("__str__", &text)
      .def("__repr__", &table_repr);
}

}  // namespace firelane::bind_trace
