// Sums of numbers from a trace. A damaged trace can make them overflow; then they wrap
// around, which is defined, instead of being undefined behaviour.
#pragma once

#include <cstdint>

namespace firelane {

inline int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrap_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

}  // namespace firelane
