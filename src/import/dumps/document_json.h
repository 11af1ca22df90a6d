// A value of a document as JSON text, for metadata and small lists.
#pragma once

#include <cstddef>
#include <string>

#include "import/pickle/document.h"

namespace firelane::importer {

// At most about `most_bytes` long, and 16 levels deep: what does not fit is null.
std::string document_json(const Document& document, Value value, size_t most_bytes);

}  // namespace firelane::importer
