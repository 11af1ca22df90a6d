// A stable sort for data that is already sorted in a few long runs, as traces are
// (ops, then Python functions, then runtime calls: each in time order). Finds the runs
// and merges neighbours; runs that do not overlap cost one comparison.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace firelane {

template <typename T, typename Less>
void run_sort(T* data, size_t count, const Less& less) {
  if (count < 2) return;
  std::vector<size_t> bounds{0};
  for (size_t i = 1; i < count; ++i) {
    if (less(data[i], data[i - 1])) bounds.push_back(i);
  }
  if (bounds.size() == 1) return;
  bounds.push_back(count);
  std::vector<T> left;
  while (bounds.size() > 2) {
    std::vector<size_t> merged{0};
    for (size_t i = 0; i + 2 < bounds.size(); i += 2) {
      T* const middle = data + bounds[i + 1];
      T* const end = data + bounds[i + 2];
      // What already lies before the right run's first element stays where it is.
      T* const begin = std::upper_bound(data + bounds[i], middle, *middle, less);
      left.assign(begin, middle);
      T* out = begin;
      T* b = middle;
      auto a = left.begin();
      while (a != left.end() && b != end) *out++ = less(*b, *a) ? *b++ : *a++;
      std::copy(a, left.end(), out);
      merged.push_back(bounds[i + 2]);
    }
    if (bounds.size() % 2 == 0) merged.push_back(bounds.back());
    bounds.swap(merged);
  }
}

}  // namespace firelane
