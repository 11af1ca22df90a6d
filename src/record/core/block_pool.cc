#include "record/core/block_pool.h"

#include <sys/mman.h>

#include <algorithm>

namespace firelane::record {

bool BlockPool::map() noexcept {
  void* pages = ::mmap(nullptr, size_t{kMaxBlocks} * kBlockBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return false;
  base_ = static_cast<char*>(pages);
  head_.store(kNone);
  fresh_.store(0);
  in_use_.store(0);
  return true;
}

void BlockPool::unmap() noexcept {
  if (base_ != nullptr) ::munmap(base_, size_t{kMaxBlocks} * kBlockBytes);
  base_ = nullptr;
}

void* BlockPool::pop() noexcept {
  uint64_t head = head_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(head) != kNone) {
    const auto index = static_cast<uint32_t>(head);
    const uint64_t next = next_[index].load(std::memory_order_relaxed) | ((head >> 32) + 1) << 32;
    if (head_.compare_exchange_weak(head, next, std::memory_order_acquire)) return hand_out(index);
  }
  uint32_t fresh = fresh_.load(std::memory_order_relaxed);
  while (fresh < kMaxBlocks) {
    if (fresh_.compare_exchange_weak(fresh, fresh + 1, std::memory_order_relaxed)) return hand_out(fresh);
  }
  return nullptr;
}

void BlockPool::push(uint32_t index) noexcept {
  uint64_t head = head_.load(std::memory_order_relaxed);
  uint64_t mine = 0;
  do {
    next_[index].store(static_cast<uint32_t>(head), std::memory_order_relaxed);
    mine = index | ((head >> 32) + 1) << 32;
  } while (!head_.compare_exchange_weak(head, mine, std::memory_order_release, std::memory_order_relaxed));
}

void* BlockPool::take() noexcept {
  if (in_use_.fetch_add(1, std::memory_order_relaxed) < limit()) {
    if (void* block = pop()) return block;
  }
  in_use_.fetch_sub(1, std::memory_order_relaxed);
  return nullptr;
}

void BlockPool::give(void* block) noexcept {
  push(static_cast<uint32_t>(static_cast<size_t>(static_cast<char*>(block) - base_) / kBlockBytes));
  in_use_.fetch_sub(1, std::memory_order_relaxed);
}

void BlockPool::warm(uint32_t blocks) noexcept {
  constexpr size_t kPageBytes = 4096;
  const uint32_t wanted = std::min({blocks, limit() / 16, kMaxWarm});
  std::array<void*, kMaxWarm> taken;
  uint32_t count = 0;
  while (count < wanted && (taken[count] = take()) != nullptr) {
    auto* page = static_cast<volatile char*>(taken[count++]);
    for (size_t i = 0; i < kBlockBytes; i += kPageBytes) page[i] = 0;
  }
  while (count > 0) give(taken[--count]);
}

void BlockPool::trim() noexcept {
  // Take all free blocks out, so that none is written to while its pages are freed.
  uint64_t head = head_.load(std::memory_order_acquire);
  while (!head_.compare_exchange_weak(head, kNone | ((head >> 32) + 1) << 32, std::memory_order_acquire)) {
  }
  auto index = static_cast<uint32_t>(head);
  while (index != kNone) {
    const uint32_t next = next_[index].load(std::memory_order_relaxed);
    if (touched_[index].exchange(false, std::memory_order_relaxed)) ::madvise(at(index), kBlockBytes, MADV_DONTNEED);
    push(index);
    index = next;
  }
}

}  // namespace firelane::record
