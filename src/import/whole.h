// All bytes of a source at once, for formats that refer backward and forward.
#pragma once

#include <string>

#include "base/result.h"
#include "import/byte_source.h"
#include "import/reader.h"

namespace firelane::importer {

// At most request.max_content_bytes of them.
Result<std::string> read_whole_content(ByteSource& source, const ReadRequest& request);

}  // namespace firelane::importer
