// The recorder's only memory for events: a fixed number of 32 KiB blocks, mapped once.
//
// take() and give() are lock-free and never allocate; pages are touched when first used, or
// before that by warm(), and returned to the system by trim(). Blocks are handed out last-in
// first-out, so that a recorder whose drain keeps up lives in a few warm blocks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace firelane::record {

inline constexpr size_t kBlockBytes = 32 << 10;

struct Block {
  static constexpr size_t kWords = (kBlockBytes - 16) / 8;

  std::atomic<Block*> next;         // the block that the thread filled after this one
  std::atomic<uint32_t> committed;  // words that the drain may read
  uint32_t reserved;
  uint64_t words[kWords];
};
static_assert(sizeof(Block) == kBlockBytes);

class BlockPool {
 public:
  // 48 MiB: with the drain's own buffers below the promised 64.
  static constexpr uint32_t kMaxBlocks = (48u << 20) / kBlockBytes;

  static constexpr uint32_t kMaxWarm = (4u << 20) / kBlockBytes;

  // Maps the region. False when the system refuses. Not thread-safe.
  bool map() noexcept;
  void unmap() noexcept;
  bool mapped() const noexcept { return base_ != nullptr; }

  // A block's memory, or null when `limit` blocks are out already. The content is undefined.
  void* take() noexcept;
  void give(void* block) noexcept;
  // At most this many blocks are out at once from now on. 0 < limit <= kMaxBlocks.
  void set_limit(uint32_t blocks) noexcept { limit_.store(blocks, std::memory_order_relaxed); }
  uint32_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  uint32_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }

  // Touches the pages of the `blocks` that are handed out next, so that their takers need not. At most a sixteenth of
  // the limit, because those blocks are taken while it works. Any thread.
  void warm(uint32_t blocks) noexcept;
  // Gives the pages of free blocks that were used since the last time back to the system.
  void trim() noexcept;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  void* pop() noexcept;
  void push(uint32_t index) noexcept;
  char* hand_out(uint32_t index) noexcept {
    touched_[index].store(true, std::memory_order_relaxed);
    return at(index);
  }
  char* at(uint32_t index) const noexcept { return base_ + size_t{index} * kBlockBytes; }

  char* base_ = nullptr;
  std::atomic<uint64_t> head_{kNone};  // | version u32 | index u32 |: the version defeats ABA
  std::atomic<uint32_t> fresh_{0};     // blocks from here on were never used
  std::atomic<uint32_t> in_use_{0};
  std::atomic<uint32_t> limit_{kMaxBlocks};
  std::array<std::atomic<uint32_t>, kMaxBlocks> next_{};
  std::array<std::atomic<bool>, kMaxBlocks> touched_{};
};

}  // namespace firelane::record
