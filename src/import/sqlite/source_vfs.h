// Lets SQLite read a ByteSource as if it were a file: read-only, no locks, no journal.
#pragma once

#include <memory>
#include <string>

#include "import/byte_source.h"

namespace firelane::importer {

// Registers the source under a name that sqlite3_open_v2() takes as its VFS; unregister_source() ends that.
std::string register_source(std::shared_ptr<const ByteSource> source, uint64_t bytes);
void unregister_source(const std::string& vfs_name);

}  // namespace firelane::importer
