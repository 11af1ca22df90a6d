#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace firelane {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? c >> 1 ^ 0x82F63B78u : c >> 1;
    t[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t k = 1; k < 8; ++k) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 0xFF];
  }
  return t;
}

constexpr Tables kCrcTables = make_tables();

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t seed) {
  uint32_t c = ~seed;
  const char* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t w = 0;
    std::memcpy(&w, p, 8);
    w ^= c;
    c = 0;
    for (size_t k = 0; k < 8; ++k) c ^= kCrcTables[7 - k][w >> (8 * k) & 0xFF];
  }
  for (; left > 0; --left, ++p) c = c >> 8 ^ kCrcTables[0][(c ^ static_cast<unsigned char>(*p)) & 0xFF];
  return ~c;
}

}  // namespace firelane
