// An allocator for arrays that are written once, from one end to the other or by several threads: resize() leaves new
// elements as they are, so that no pass over the memory goes before the writing, and pages are there when they are
// written and not earlier.
//
//   std::vector<int64_t, LazyAllocator<int64_t>> starts;
//   starts.resize(rows);  // anything stands in there: write each element before it is read
//
// Pages of 2 MiB (madvise) were tried for large arrays, and cost more system time than they saved.
#pragma once

#include <cstddef>
#include <memory>

namespace firelane {

template <typename T>
struct LazyAllocator {
  using value_type = T;

  LazyAllocator() = default;
  template <typename U>
  LazyAllocator(const LazyAllocator<U>&) {}  // NOLINT: implicit on purpose, required of allocators

  T* allocate(size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* array, size_t count) noexcept { std::allocator<T>().deallocate(array, count); }

  // What resize() calls for a new element without a value.
  template <typename U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Values>
  void construct(U* at, Values&&... values) {
    ::new (static_cast<void*>(at)) U(static_cast<Values&&>(values)...);
  }

  template <typename U>
  bool operator==(const LazyAllocator<U>&) const {
    return true;
  }
};

}  // namespace firelane
