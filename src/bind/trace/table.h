// firelane.Table: named columns for pandas, polars, DuckDB and pyarrow, and a first look for people.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "export/arrow.h"
#include "report/table.h"

namespace firelane::bind {

struct Table {
  std::shared_ptr<const ArrowTable> arrow;
  // What print() shows, for answers of verbs; its first table is `arrow`. Null for the trace's own tables.
  std::shared_ptr<const report::Report> report = nullptr;
};

void bind_table(nanobind::module_& module);

}  // namespace firelane::bind
