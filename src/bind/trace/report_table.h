// Between reports and Arrow: a verb's table as columns for programs, any table's first rows for people.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "export/arrow.h"
#include "report/table.h"

namespace firelane::bind_trace {

// Columns under their names, numbers plain (ns, bytes, percent 0..100) and what is not known null.
// A column of numbers is of integers unless some cell, or its kind (percent, bandwidth), is not;
// one text among them (a process called "Spans") makes it a column of texts.
std::shared_ptr<const exporter::ArrowTable> arrow_table(const report::Table& table);

// The first `rows` rows, columns labelled by their names.
report::Table first_rows(const exporter::ArrowTable& table, size_t rows);

}  // namespace firelane::bind_trace
