// Reads a .lane file (docs/format.md) into rows. What is damaged or cut off is passed over
// and counted; everything that is whole is kept.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "import/reader.h"
#include "model/raw.h"

namespace firelane::importer {

// By the first bytes of a file.
bool is_lane(std::string_view begin);

Reader lane_reader();

// `file` is the whole file; `name` stands in messages. At most `max_content_bytes` are unpacked.
Result<RawTrace> read_lane(std::string_view file, const std::string& name,
                           uint64_t max_content_bytes = uint64_t{1} << 40);

}  // namespace firelane::importer
