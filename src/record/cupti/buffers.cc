#include "record/cupti/buffers.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace firelane::cupti {

BufferQueue::~BufferQueue() {
  for (const Full& full : full_) std::free(full.data);
  trim();
}

// With room for its pointer wherever it will be: handing buffers around never fails.
uint8_t* BufferQueue::allocate() noexcept {
  try {
    free_.reserve(allocated_ + 1);
    full_.reserve(allocated_ + 1);
    lent_.reserve(allocated_ + 1);
  } catch (const std::exception&) {
    return nullptr;
  }
  auto* data = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  if (data != nullptr) ++allocated_;
  return data;
}

void BufferQueue::prepare(size_t buffers) noexcept {
  for (;;) {
    uint8_t* data = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (free_.size() >= buffers || allocated_ >= kMaxBuffers) return;
      data = allocate();
    }
    if (data == nullptr) return;
    std::memset(data, 0, kBufferBytes);
    release(data);
  }
}

uint8_t* BufferQueue::take(Full& lost) noexcept {
  const std::lock_guard lock(mutex_);
  uint8_t* data = nullptr;
  if (!free_.empty()) {
    data = free_.back();
    free_.pop_back();
  } else if (allocated_ < kMaxBuffers || full_.empty()) {
    data = allocate();
  }
  if (data == nullptr && !full_.empty()) {  // the bound is reached, or memory is short
    lost = full_.front();
    full_.erase(full_.begin());
    data = lost.data;
  }
  if (data != nullptr) lent_.push_back(data);
  return data;
}

bool BufferQueue::take_from_cupti(uint8_t* data) noexcept {
  const auto found = std::find(lent_.begin(), lent_.end(), data);
  if (found == lent_.end()) return false;
  lent_.erase(found);
  return true;
}

void BufferQueue::discard(uint8_t* data) noexcept {
  std::free(data);
  --allocated_;
}

void BufferQueue::complete(const Full& full) noexcept {
  const std::lock_guard lock(mutex_);
  if (!take_from_cupti(full.data)) return;
  if (full.valid_bytes > 0) {
    full_.push_back(full);
  } else {
    free_.push_back(full.data);
  }
}

bool BufferQueue::next(Full& full) noexcept {
  const std::lock_guard lock(mutex_);
  if (full_.empty()) return false;
  full = full_.front();
  full_.erase(full_.begin());
  return true;
}

void BufferQueue::release(uint8_t* data) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(data);
}

void BufferQueue::reclaim() noexcept {
  const std::lock_guard lock(mutex_);
  for (uint8_t* data : lent_) discard(data);
  lent_.clear();
}

void BufferQueue::trim() noexcept {
  const std::lock_guard lock(mutex_);
  for (uint8_t* data : free_) std::free(data);
  allocated_ -= free_.size();
  free_.clear();
}

size_t BufferQueue::count() noexcept {
  const std::lock_guard lock(mutex_);
  return allocated_;
}

}  // namespace firelane::cupti
