// rocprofv3's JSON (--output-format json) and CSV (--output-format csv). docs/formats/rocprof.md.
#pragma once

#include <string_view>

#include "import/reader.h"

namespace firelane::importer {

bool is_rocprof_json(std::string_view begin);
Reader rocprof_json_reader();

// One table a file: kernels, copies, HIP or HSA calls, or markers; its columns say which.
bool is_rocprof_csv(std::string_view begin);
Reader rocprof_csv_reader();

}  // namespace firelane::importer
