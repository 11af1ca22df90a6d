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
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

}  // namespace firelane::analyze
