// The compressed path. Mutating gzip bytes alone dies at the checksum, so plain input is packed here first: as one
// member or two, whole, torn or with a byte turned over. Where, the input's own length and last bytes decide.
// Input that already is gzip goes in as it is.
#include <isa-l/igzip_lib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "use_model.h"

namespace {

std::string pack(std::string_view text) {
  std::string out(text.size() + text.size() / 8 + 512, '\0');
  isal_zstream stream;
  isal_deflate_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  std::vector<char> in(text.begin(), text.end());  // ISA-L takes it as not const
  stream.next_in = reinterpret_cast<uint8_t*>(in.data());
  stream.avail_in = static_cast<uint32_t>(in.size());
  stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  stream.avail_out = static_cast<uint32_t>(out.size());
  FL_CHECK(isal_deflate(&stream) == COMP_OK, "fuzz: packing must work");
  out.resize(out.size() - stream.avail_out);
  return out;
}

std::string vary(std::string_view text) {
  const size_t size = text.size();
  const size_t dice = static_cast<uint8_t>(text.back()) * 256u + static_cast<uint8_t>(text[size / 2]) + size;
  const size_t place = dice * 2654435761u;
  std::string packed;
  switch (dice % 4) {
    case 0: return pack(text);
    case 1: return pack(text.substr(0, place % size)) + pack(text.substr(place % size));
    case 2:
      packed = pack(text);
      packed.resize(place % packed.size());
      return packed;
    default:
      packed = pack(text);
      packed[place % packed.size()] ^= static_cast<char>(1 + dice % 255);
      return packed;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool is_gzip = text.starts_with("\x1f\x8b");
  firelane::fuzz::load_and_use(is_gzip || text.empty() ? std::string(text) : vary(text));
  return 0;
}
