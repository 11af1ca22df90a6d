// An allocator for arrays that are written once, from one end to the other or by several threads: resize() leaves new
// elements as they are, so that no pass over the memory goes before the writing, and pages are there when they are
// written and not earlier. Large arrays ask the kernel for pages of 2 MiB, whose faults are a hundredth as many.
//
//   std::vector<int64_t, LazyAllocator<int64_t>> starts;
//   starts.resize(rows);  // anything stands in there: write each element before it is read
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace firelane {

template <typename T>
struct LazyAllocator {
  using value_type = T;
  static constexpr size_t kHugePage = size_t{2} << 20;

  LazyAllocator() = default;
  template <typename U>
  LazyAllocator(const LazyAllocator<U>&) {}  // NOLINT: implicit on purpose, required of allocators

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < 2 * kHugePage) return static_cast<T*>(::operator new(bytes));
    void* const pages = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
    if (pages == nullptr) throw std::bad_alloc();
    // Not the last one: more of it would be in memory than is used. Where the kernel has none, small ones do.
    (void)::madvise(pages, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
    return static_cast<T*>(pages);
  }
  void deallocate(T* pages, size_t count) noexcept {
    if (count * sizeof(T) < 2 * kHugePage) return ::operator delete(pages);
    std::free(pages);
  }

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
