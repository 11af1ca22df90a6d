// The buffers that CUPTI fills: recycled, bounded, and handed from the thread that completes one to the drain.
//
// When all are full, the oldest undecoded one is reclaimed and its records are lost (and counted): the program never
// waits for the recorder, and memory stays bounded. Buffers that CUPTI itself holds are beyond the bound: they come
// back when it completes them, or by reclaim() once it has left the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace firelane::cupti {

class BufferQueue {
 public:
  static constexpr size_t kBufferBytes = 1 << 20;
  static constexpr size_t kMaxBuffers = 16;

  struct Full {
    uint8_t* data = nullptr;
    size_t valid_bytes = 0;
    void* context = nullptr;
    uint32_t stream = 0;
  };

  ~BufferQueue();

  // Makes sure that `buffers` wait to be taken, their pages touched, so that a thread in the middle of a launch
  // does not have to. Fewer if there is not enough memory.
  void prepare(size_t buffers) noexcept;
  // A buffer to fill; null if there is no memory. `lost` is set to the full one that was dropped, if any.
  uint8_t* take(Full& lost) noexcept;
  // CUPTI returns a buffer: to be read by next() or, if it has no valid bytes, to be filled again. One that was
  // reclaimed is ignored.
  void complete(const Full& full) noexcept;
  // Any thread but one at a time: the oldest full buffer. Give it back by release().
  bool next(Full& full) noexcept;
  void release(uint8_t* data) noexcept;
  // Takes back what CUPTI holds. REQUIRES: CUPTI was detached without returning it.
  void reclaim() noexcept;
  // Returns unused memory to the system.
  void trim() noexcept;
  // Buffers that exist, whoever has them.
  size_t count() noexcept;

 private:
  uint8_t* allocate() noexcept;
  bool take_from_cupti(uint8_t* data) noexcept;
  void discard(uint8_t* data) noexcept;

  std::mutex mutex_;
  std::vector<uint8_t*> free_;
  std::vector<Full> full_;      // oldest first
  std::vector<uint8_t*> lent_;  // CUPTI has these
  size_t allocated_ = 0;
};

}  // namespace firelane::cupti
