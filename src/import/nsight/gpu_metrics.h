// GPU_METRICS of an Nsight Systems export (nsys profile --gpu-metrics-devices=all): a counter for each metric of each
// GPU.
#pragma once

#include "import/sqlite/database.h"
#include "model/raw.h"

namespace firelane::importer {

// Returns the number of rows; 0 if the file has no such table.
uint64_t read_gpu_metrics(SqlDatabase& database, RawPool& pool, RawPart& part);

}  // namespace firelane::importer
