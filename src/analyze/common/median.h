// The median of whole numbers: the middle one, or the mean of the two middle ones, rounded down.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

// kNoNumber when there are none.
inline int64_t median(std::vector<int64_t> values) {
  if (values.empty()) return kNoNumber;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const int64_t below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

inline int64_t median_or_zero(std::vector<int64_t> values) { return values.empty() ? 0 : median(std::move(values)); }

}  // namespace firelane::analyze
