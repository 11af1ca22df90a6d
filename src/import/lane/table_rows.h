// Chunks of rows in a converted .lane file (format/table_chunk.h) -> rows of a part.
#pragma once

#include <string_view>

#include "model/raw.h"

namespace firelane::importer {

// Counts a chunk that is damaged, or of a table that it does not know.
void add_table_rows(std::string_view payload, RawPool& pool, RawPart& part);

}  // namespace firelane::importer
