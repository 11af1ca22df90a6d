// How many of many like cases a unit test tries: a sample of them, or, with FIRELANE_DEEP set (`make check-deep`), all.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace firelane {

inline bool is_deep_test() { return std::getenv("FIRELANE_DEEP") != nullptr; }

// Whether a test that samples every `nth` case tries the one with this index.
inline bool is_in_sample(size_t index, size_t nth) { return is_deep_test() || index % nth == 0; }

}  // namespace firelane
