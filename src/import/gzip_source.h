// Inflates a gzip source, any number of members, as one stream of bytes (ISA-L).
//
// Every 16 MiB of output a copy of the inflater's state is kept (about 90 KiB), so that
// read_at() has to inflate at most that much to get anywhere.
#pragma once

#include <memory>
#include <string_view>

#include "import/byte_source.h"

namespace firelane::importer {

bool is_gzip(std::string_view begin);

// `max_content_bytes`: the stream may not grow beyond it.
std::unique_ptr<ByteSource> open_gzip(std::unique_ptr<ByteSource> compressed, uint64_t max_content_bytes);

}  // namespace firelane::importer
