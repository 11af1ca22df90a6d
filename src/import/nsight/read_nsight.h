// Nsight Systems' SQLite export (nsys export --type sqlite), schemas 3.1 to 3.25.
//
// Every table is optional (nsys leaves empty ones out), and every column is asked for by name. What becomes what:
// docs/formats/nsight.md.
#pragma once

#include "base/result.h"
#include "import/reader.h"
#include "import/sqlite/database.h"
#include "model/raw.h"

namespace firelane::importer {

bool is_nsight(const SqlDatabase& database);
Result<RawTrace> read_nsight(SqlDatabase& database, const ReadRequest& request);

}  // namespace firelane::importer
