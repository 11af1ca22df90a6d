// The reader of parts. Mutated bytes alone die at the checksums, so those are put right here first; what is read is
// then reduced, alone and beside itself as another rank, and sliced and matched. Anything else is taken for frames of
// slices and matches, whose checksums are put right likewise.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/crc32c.h"
#include "ranks/part/part_file.h"
#include "ranks/reduce/reduce.h"
#include "ranks/reduce/shuffle.h"

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

void fix_frame_checksums(std::string& frames) {
  for (size_t at = 0; frames.size() >= at + 8;) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, frames.data() + at, 4);
    if (bytes < 4 || frames.size() - at - 4 < bytes) return;
    const uint32_t sum = crc32c(std::string_view(frames).substr(at + 8, bytes - 4));
    std::memcpy(frames.data() + at + 4, &sum, 4);
    at += 4 + size_t{bytes};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (!is_part(file)) {
    fix_frame_checksums(file);
    const Result<std::string> matches = match_slices(file, "fuzz");
    if (matches.ok()) FL_CHECK(ShuffledMatches().add(matches.value(), "fuzz").ok(), "fuzz_part: matches must be read");
    (void)ShuffledMatches().add(file, "fuzz");
    return 0;
  }
  fix_part_checksums(file);
  Result<Part> part = decode_part(file, "fuzz");
  if (!part.ok()) return 0;
  const Result<Part> again = decode_part(encode_part(part.value()), "fuzz");
  FL_CHECK(again.ok() && again.value() == part.value(), "fuzz_part: a part must survive being written");
  const Result<std::string> matches = match_slices(slice_part(part.value()), "fuzz");
  FL_CHECK(matches.ok(), "fuzz_part: slices of a part must be matched");
  Intake intake;
  FL_CHECK(intake.matched.add(matches.value(), "fuzz").ok(), "fuzz_part: matches must be read");
  Part other = part.value();
  other.rank = part.value().rank + 1;
  intake.add(std::move(other));
  intake.add(std::move(part).value());
  (void)reduce(intake);
  return 0;
}
