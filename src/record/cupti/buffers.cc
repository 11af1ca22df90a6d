#include "record/cupti/buffers.h"

#include <cstdlib>
#include <exception>

namespace firelane {

BufferQueue::~BufferQueue() {
  for (const Full& full : full_) std::free(full.data);
  trim();
}

uint8_t* BufferQueue::take(Full& lost) noexcept {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    uint8_t* data = free_.back();
    free_.pop_back();
    return data;
  }
  if (allocated_ >= kMaxBuffers && !full_.empty()) {
    lost = full_.front();
    full_.erase(full_.begin());
    return lost.data;
  }
  auto* data = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  if (data != nullptr) ++allocated_;
  return data;
}

void BufferQueue::complete(const Full& full) noexcept {
  if (full.data == nullptr) return;
  const std::lock_guard lock(mutex_);
  try {
    full_.push_back(full);
  } catch (const std::exception&) {  // no memory for 32 bytes: the records go
    std::free(full.data);
    --allocated_;
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
  try {
    free_.push_back(data);
  } catch (const std::exception&) {
    std::free(data);
    --allocated_;
  }
}

void BufferQueue::trim() noexcept {
  const std::lock_guard lock(mutex_);
  for (uint8_t* data : free_) std::free(data);
  allocated_ -= free_.size();
  free_.clear();
}

}  // namespace firelane
