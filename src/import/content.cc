#include "import/content.h"

#include "import/decompress.h"
#include "import/reader.h"

namespace firelane::importer {

Result<Content> open_content(const std::string& path) {
  constexpr uint64_t kMostContent = uint64_t{16} << 30;
  Content content;
  FL_TRY(content.source, open_file(path));
  content.file_bytes = content.source->total_bytes();
  const auto look = [&] {
    content.begin.resize(kSniffBytes);
    const auto got = content.source->read_at(0, content.begin.data(), content.begin.size());
    content.begin.resize(got.ok() ? got.value() : 0);
  };
  look();
  if (const Compression* const compression = find_compression(content.begin)) {
    content.source = compression->open(std::move(content.source), kMostContent);
    content.is_compressed = true;
    look();
  }
  return content;
}

}  // namespace firelane::importer
