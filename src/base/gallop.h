// Binary search from a place that is known to be near: for walks in order of time that look something up at each step.
// It costs the logarithm of the distance, and touches memory that the step before has just touched.
#pragma once

#include <algorithm>
#include <iterator>

namespace firelane {

// The first of [at, end) for which `before` does not hold; it holds for a first part of them and for no other.
template <typename It, typename Before>
It gallop(It at, It end, const Before& before) {
  typename std::iterator_traits<It>::difference_type step = 1;
  while (step < end - at && before(at[step])) {
    at += step;
    step *= 2;
  }
  return std::partition_point(at, step < end - at ? at + step : end, before);
}

// The same for all of [begin, end), starting at `near`, which may lie on either side.
template <typename It, typename Before>
It gallop_from(It near, It begin, It end, const Before& before) {
  typename std::iterator_traits<It>::difference_type step = 1;
  while (near != begin && !before(*std::prev(near))) {
    if (near - begin <= step) return std::partition_point(begin, near, before);
    near -= step;
    step *= 2;
  }
  return gallop(near, end, before);
}

}  // namespace firelane
