// An allocator for large, short-lived arrays: pages straight from the kernel. Reserving
// is free until the pages are touched, and freeing returns them to the system at once,
// which malloc does not do for blocks below its mmap threshold.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace firelane {

template <typename T>
struct PageAllocator {
  using value_type = T;

  PageAllocator() = default;
  template <typename U>
  PageAllocator(const PageAllocator<U>&) {}  // NOLINT: implicit on purpose, required of allocators

  T* allocate(size_t count) {
    void* pages =
        ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(pages);
  }
  void deallocate(T* pages, size_t count) noexcept { ::munmap(pages, count * sizeof(T)); }

  template <typename U>
  bool operator==(const PageAllocator<U>&) const {
    return true;
  }
};

// Gives the whole pages among these elements of such an array back before the array itself: their values are lost.
template <typename T>
void release_pages(T* begin, T* end) noexcept {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
  // Down to a whole page of this system: madvise rounds a length up, beyond these elements.
  const uintptr_t last = reinterpret_cast<uintptr_t>(end) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace firelane
