// A fast hash for short texts (names, shapes): eight bytes at a time, multiply and
// fold. Not for hostile keys in a network service; a trace that makes it collide
// only makes its own load slower.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace firelane {

inline uint64_t mix_hash(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD1B54A32D192ED03u);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_text(std::string_view text) {
  const char* p = text.data();
  size_t left = text.size();
  uint64_t h = left;
  while (left >= 16) {
    uint64_t a = 0;
    uint64_t b = 0;
    std::memcpy(&a, p, 8);
    std::memcpy(&b, p + 8, 8);
    h = mix_hash(h ^ a, b);
    p += 16;
    left -= 16;
  }
  uint64_t a = 0;
  uint64_t b = 0;
  if (left >= 8) {
    std::memcpy(&a, p, 8);
    std::memcpy(&b, p + left - 8, 8);
  } else if (left > 0) {  // an absent text has no address to copy from
    std::memcpy(&a, p, left);
  }
  return mix_hash(h ^ a, b ^ left);
}

}  // namespace firelane
