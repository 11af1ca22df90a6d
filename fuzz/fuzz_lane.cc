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
  size_t at = kFileHeaderBytes;
  while (file.size() >= at + kChunkHeaderBytes && file.compare(at, kChunkMarker.size(), kChunkMarker) == 0) {
    uint32_t stored = 0;
    std::memcpy(&stored, file.data() + at + 8, 4);
    if (file.size() - at - kChunkHeaderBytes < stored) return;
    const std::string_view view(file);
    const uint32_t sum = crc32c(view.substr(at + kChunkHeaderBytes, stored), crc32c(view.substr(at, 20)));
    std::memcpy(file.data() + at + 20, &sum, 4);
    at += kChunkHeaderBytes + stored;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (!file.starts_with(firelane::kLaneMagic)) return 0;
  fix_checksums(file);
  (void)firelane::dump_lane(file, "fuzz");
  firelane::fuzz::load_and_use(std::move(file));
  return 0;
}
