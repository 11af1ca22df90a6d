// The reader of parts. Mutated bytes alone die at the checksums, so those are put right here first; what is read is
// then reduced, alone and beside itself as another rank.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/crc32c.h"
#include "ranks/part/part_file.h"
#include "ranks/reduce/reduce.h"

namespace {

using namespace firelane;
using namespace firelane::ranks;

void fix_part_checksums(std::string& file) {
  size_t at = kPartHeaderBytes;
  while (file.size() >= at + kSectionHeaderBytes) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, file.data() + at + 4, 8);
    if (file.size() - at - kSectionHeaderBytes < bytes) return;
    const std::string_view view(file);
    const uint32_t sum = crc32c(view.substr(at + kSectionHeaderBytes, bytes), crc32c(view.substr(at, 12)));
    std::memcpy(file.data() + at + 12, &sum, 4);
    at += kSectionHeaderBytes + bytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (!is_part(file)) return 0;
  fix_part_checksums(file);
  Result<Part> part = decode_part(file, "fuzz");
  if (!part.ok()) return 0;
  const Result<Part> again = decode_part(encode_part(part.value()), "fuzz");
  FL_CHECK(again.ok() && again.value() == part.value(), "fuzz_part: a part must survive being written");
  Intake intake;
  Part other = part.value();
  other.rank = part.value().rank + 1;
  intake.add(std::move(other));
  intake.add(std::move(part).value());
  (void)reduce(intake);
  return 0;
}
