// The .lane reader. Mutated bytes alone die at the chunks' checksums, so those are put right here first: what lies
// behind them (definitions, sections, notes, inputs) is then read as the recorder's own.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/crc32c.h"
#include "format/dump.h"
#include "format/layout.h"
#include "use_model.h"

namespace {

void fix_checksums(std::string& file) {
  using namespace firelane;
  size_t at = format::kFileHeaderBytes;
  while (file.size() >= at + format::kChunkHeaderBytes &&
         file.compare(at, format::kChunkMarker.size(), format::kChunkMarker) == 0) {
    uint32_t stored = 0;
    std::memcpy(&stored, file.data() + at + 8, 4);
    if (file.size() - at - format::kChunkHeaderBytes < stored) return;
    const std::string_view view(file);
    const uint32_t sum = crc32c(view.substr(at + format::kChunkHeaderBytes, stored), crc32c(view.substr(at, 20)));
    std::memcpy(file.data() + at + 20, &sum, 4);
    at += format::kChunkHeaderBytes + stored;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (!file.starts_with(firelane::format::kLaneMagic)) return 0;
  fix_checksums(file);
  (void)firelane::format::dump_lane(file, "fuzz");
  firelane::fuzz::load_and_use(std::move(file));
  return 0;
}
