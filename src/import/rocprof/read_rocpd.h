// rocpd databases (.db): what rocprofv3 writes by default.
//
// Names of tables end in an id of the run; rows refer to strings, agents, queues and streams by number. The views that
// rocpd defines on top of them are not asked: nothing in the file is executed. docs/formats/rocprof.md.
#pragma once

#include "base/result.h"
#include "import/reader.h"
#include "import/sqlite/database.h"
#include "model/raw.h"

namespace firelane::importer {

bool is_rocpd(const SqlDatabase& database);
Result<RawTrace> read_rocpd(SqlDatabase& database, const ReadRequest& request);

}  // namespace firelane::importer
