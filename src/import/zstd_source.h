// Decompresses a zstd source, any number of frames, as one stream of bytes.
//
// read_at() begins at the last frame before the place: of a file with a single frame, as `zstd` writes it, everything
// before the place is decompressed again. gzip files can be read at any place (import/gzip_source.h).
#pragma once

#include <memory>
#include <string_view>

#include "import/byte_source.h"

namespace firelane::importer {

bool is_zstd(std::string_view begin);

// `max_content_bytes`: the stream may not grow beyond it.
std::unique_ptr<ByteSource> open_zstd(std::unique_ptr<ByteSource> compressed, uint64_t max_content_bytes);

}  // namespace firelane::importer
