// How large is the block at this address? For blocks seen by the memory hook, across threads, without a lock.
//
// The key's hash names two sets of eight; an insert takes any free place in them. A block is looked up by
// whoever frees it, which happens after its allocation in every program that has no bug, so one
// compare-exchange on the key is all the order that is needed. A full table refuses (rare: 128 Ki live blocks),
// and the block's free is then not seen.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/hash.h"

namespace firelane {

class SizeTable {
 public:
  // Maps 2 MiB of address space; pages become memory when used. False when the system refuses.
  bool map() noexcept {
    if (sets_ != nullptr) return true;
    void* memory = ::mmap(nullptr, kSetCount * sizeof(Set), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) sets_ = static_cast<Set*>(memory);
    return sets_ != nullptr;
  }
  // Forgets all blocks and gives the memory back. Blocks inserted meanwhile may be forgotten or not.
  void clear() noexcept {
    if (sets_ != nullptr) ::madvise(sets_, kSetCount * sizeof(Set), MADV_DONTNEED);
  }

  // REQUIRES: map() was true; address != 0.
  bool insert(uint64_t address, int64_t bytes) noexcept {
    const uint64_t hash = mix_hash(address, 0);
    return insert_into(sets_[hash & kSetMask], address, bytes) ||
           insert_into(sets_[hash >> 32 & kSetMask], address, bytes);
  }
  // The block's size, which is then forgotten; -1 when the block is not known.
  int64_t take(uint64_t address) noexcept {
    const uint64_t hash = mix_hash(address, 0);
    const int64_t bytes = take_from(sets_[hash & kSetMask], address);
    return bytes >= 0 ? bytes : take_from(sets_[hash >> 32 & kSetMask], address);
  }

 private:
  static constexpr size_t kSetCount = 16 << 10;
  static constexpr uint64_t kSetMask = kSetCount - 1;
  static constexpr size_t kWays = 8;
  struct alignas(128) Set {
    std::atomic<uint64_t> keys[kWays];  // 0 = free
    std::atomic<int64_t> bytes[kWays];
  };

  static bool insert_into(Set& set, uint64_t address, int64_t bytes) noexcept {
    for (size_t way = 0; way < kWays; ++way) {
      uint64_t expected = 0;
      if (set.keys[way].load(std::memory_order_relaxed) == 0 &&
          set.keys[way].compare_exchange_strong(expected, address, std::memory_order_acq_rel)) {
        set.bytes[way].store(bytes, std::memory_order_release);
        return true;
      }
    }
    return false;
  }
  static int64_t take_from(Set& set, uint64_t address) noexcept {
    for (size_t way = 0; way < kWays; ++way) {
      if (set.keys[way].load(std::memory_order_acquire) == address) {
        const int64_t bytes = set.bytes[way].load(std::memory_order_acquire);
        set.keys[way].store(0, std::memory_order_release);
        return bytes;
      }
    }
    return -1;
  }

  Set* sets_ = nullptr;
};

}  // namespace firelane
