// The size of the block at an address, for blocks seen by the memory hook, across threads, without a lock.
//
// The key's hash names a set of four places in the table's near part, which is small enough to stay in the processor's
// cache, and two sets of eight in the rest, which are not even looked at while the near part suffices (some thousand
// live blocks). An insert takes the first free place. A block is looked up by whoever frees it, which happens after its
// allocation in every program that has no bug, so one compare-exchange on the key is all the order that is needed. A
// full table refuses (rare: 128 Ki live blocks), and the block's free is then not seen.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hash.h"

namespace firelane::torch_hooks {

class SizeTable {
 public:
  // Maps 2 MiB of address space; pages become memory when used. False when the system refuses.
  bool map() noexcept {
    if (entries_ != nullptr) return true;
    void* memory = ::mmap(nullptr, kEntryCount * sizeof(Entry), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) entries_ = static_cast<Entry*>(memory);
    return entries_ != nullptr;
  }

  // REQUIRES: map() was true; address != 0.
  bool insert(uint64_t address, int64_t bytes) noexcept {
    const uint64_t hash = mix_hash(address, 0);
    if (insert_into(near(hash), address, bytes)) [[likely]]
      return true;
    far_count_.fetch_add(1, std::memory_order_relaxed);  // before it can be looked up
    if (insert_into(far(hash), address, bytes) || insert_into(far(hash >> 32), address, bytes)) return true;
    far_count_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  // The block's size, which is then forgotten; -1 when the block is not known.
  int64_t take(uint64_t address) noexcept {
    const uint64_t hash = mix_hash(address, 0);
    int64_t bytes = take_from(near(hash), address);
    if (bytes >= 0 || far_count_.load(std::memory_order_relaxed) == 0) return bytes;
    bytes = take_from(far(hash), address);
    if (bytes < 0) bytes = take_from(far(hash >> 32), address);
    if (bytes >= 0) far_count_.fetch_sub(1, std::memory_order_relaxed);
    return bytes;
  }

 private:
  static constexpr size_t kEntryCount = 128 << 10;
  static constexpr size_t kNearCount = 8 << 10;  // of them; 128 KiB
  struct Entry {
    std::atomic<uint64_t> key;  // 0 = free
    std::atomic<int64_t> bytes;
  };
  using Set = std::span<Entry>;

  Set near(uint64_t hash) const noexcept { return {entries_ + 4 * (hash & (kNearCount / 4 - 1)), 4}; }
  Set far(uint64_t hash) const noexcept {
    constexpr uint64_t kSets = (kEntryCount - kNearCount) / 8;
    return {entries_ + kNearCount + 8 * ((hash & UINT32_MAX) * kSets >> 32), 8};
  }

  static bool insert_into(Set set, uint64_t address, int64_t bytes) noexcept {
    for (Entry& entry : set) {
      uint64_t expected = 0;
      if (entry.key.load(std::memory_order_relaxed) == 0 &&
          entry.key.compare_exchange_strong(expected, address, std::memory_order_acq_rel)) {
        entry.bytes.store(bytes, std::memory_order_release);
        return true;
      }
    }
    return false;
  }
  static int64_t take_from(Set set, uint64_t address) noexcept {
    for (Entry& entry : set) {
      if (entry.key.load(std::memory_order_acquire) == address) {
        const int64_t bytes = entry.bytes.load(std::memory_order_acquire);
        entry.key.store(0, std::memory_order_release);
        return bytes;
      }
    }
    return -1;
  }

  std::atomic<int64_t> far_count_{0};  // blocks outside their near set
  Entry* entries_ = nullptr;
};

}  // namespace firelane::torch_hooks
