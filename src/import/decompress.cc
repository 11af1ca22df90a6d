#include "import/decompress.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "import/gzip_source.h"
#include "import/zstd_source.h"

namespace firelane::importer {

namespace {

constexpr uint64_t kBombRatio = 250;
constexpr uint64_t kBombMinBytes = uint64_t{1} << 30;

constexpr Compression kCompressions[] = {
    {"gzip", is_gzip, open_gzip},
    {"zstd", is_zstd, open_zstd},
};

}  // namespace

const Compression* find_compression(std::string_view begin) {
  const auto* const found = std::find_if(std::begin(kCompressions), std::end(kCompressions),
                                         [&](const Compression& each) { return each.sniff(begin); });
  return found == std::end(kCompressions) ? nullptr : found;
}

std::string refuse_bomb(uint64_t compressed_bytes, uint64_t content_bytes, uint64_t max_content_bytes) {
  if (content_bytes > max_content_bytes) {
    return "decompresses to more than " + std::to_string(max_content_bytes) + " bytes; not opened";
  }
  if (content_bytes > kBombMinBytes && content_bytes / kBombRatio > compressed_bytes) {
    return "grows more than " + std::to_string(kBombRatio) +
           "-fold when decompressed, as no trace does; decompress it yourself if you trust it";
  }
  return "";
}

}  // namespace firelane::importer
