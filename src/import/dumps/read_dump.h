// Files that torch writes with pickle, and the flight recorder's JSON: memory snapshots and NCCL flight recorders.
#pragma once

#include "import/reader.h"

namespace firelane::importer {

Reader pickle_reader();
Reader flight_json_reader();

}  // namespace firelane::importer
