// A report for programs that draw: {"title", "facts", "tables", "notes"}, where labels and kinds go along with the
// plain numbers. docs/viewer-protocol.md describes it.
#pragma once

#include <cstddef>
#include <string>

#include "report/table.h"

namespace firelane::report {

// One line of JSON. At most `max_rows` rows of each table; "row_count" says how many there are.
std::string described(const Report& report, size_t max_rows);

}  // namespace firelane::report
