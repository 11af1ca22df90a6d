#include "import/sqlite_formats.h"

#include "import/nsight/read_nsight.h"
#include "import/rocprof/read_rocpd.h"
#include "import/sqlite/database.h"

namespace firelane::importer {

namespace {

Result<RawTrace> read_database(std::unique_ptr<ByteSource> content, const ReadRequest& request) {
  FL_TRY(const std::unique_ptr<SqlDatabase> database, SqlDatabase::open(std::move(content), request));
  if (request.progress) request.progress(0, request.file_bytes);
  if (is_nsight(*database)) return read_nsight(*database, request);
  if (is_rocpd(*database)) return read_rocpd(*database, request);
  return Error{request.name +
               ": an SQLite database, but neither an export of Nsight Systems nor a rocpd database of rocprofv3"};
}

}  // namespace

Reader sqlite_reader() {
  return {"SQLite", [](std::string_view begin) { return begin.starts_with("SQLite format 3"); }, read_database};
}

}  // namespace firelane::importer
