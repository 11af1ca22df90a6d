// firelane.Table: named columns for pandas, polars, DuckDB and pyarrow, and a first look for people.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "export/arrow.h"
#include "report/table.h"

namespace firelane::bind_trace {

// What a verb answers, as people see it.
struct ForPeople {
  report::Report report;  // its only table is the answer's
  std::string text;
};

struct Table {
  std::shared_ptr<const exporter::ArrowTable> arrow;
  std::shared_ptr<const ForPeople> shown = nullptr;  // null for the trace's own tables and for queries
};

void bind_table(nanobind::module_& module);

}  // namespace firelane::bind_trace
