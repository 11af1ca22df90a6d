// Traces that are SQLite databases: which tables one has says what wrote it.
#pragma once

#include "import/reader.h"

namespace firelane::importer {

Reader sqlite_reader();

}  // namespace firelane::importer
