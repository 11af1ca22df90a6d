// What an Nsight Systems export says about the machine: its GPUs, its driver, its clock.
#pragma once

#include <string>

#include "import/sqlite/database.h"
#include "model/model.h"

namespace firelane::importer {

void read_facts(SqlDatabase& database, const std::string& schema, TraceInfo& info, LossCounts& losses);

}  // namespace firelane::importer
