// What the machine that reads pickles works with: the source's bytes, and a stack of values. Inlined into its loop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/byte_source.h"
#include "import/pickle/document.h"

namespace firelane::importer {

// The source's bytes, in pieces.
class PickleInput {
 public:
  PickleInput(ByteSource& source, size_t piece_bytes)
      : source_(source), piece_bytes_(std::max<size_t>(1, piece_bytes)) {}

  uint64_t offset() const { return before_ + at_; }
  // `count` bytes that are valid until the next call; nullptr when the source ends before.
  const char* take(size_t count) {
    if (end_ - at_ < count && !fill(count)) return nullptr;
    at_ += count;
    return buffer_.data() + at_ - count;
  }
  bool has_more() { return at_ < end_ || fill(1); }
  // What is at hand, and how much of it was taken by whoever looked.
  std::string_view rest() const { return {buffer_.data() + at_, end_ - at_}; }
  void skip(size_t count) { at_ += count; }

 private:
  bool fill(size_t count) {
    before_ += at_;
    std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
    end_ -= at_;
    at_ = 0;
    while (end_ < count && !is_over_) {
      // A length that the file only claims costs no memory: pieces grow with what is there.
      buffer_.resize(std::max(buffer_.size(), end_ + piece_bytes_));
      const size_t got = source_.read(buffer_.data() + end_, piece_bytes_);
      is_over_ = got < piece_bytes_;
      end_ += got;
    }
    return end_ >= count;
  }

  ByteSource& source_;
  size_t piece_bytes_;
  std::string buffer_;
  size_t at_ = 0, end_ = 0;
  uint64_t before_ = 0;
  bool is_over_ = false;
};

// Values that wait for what they belong to. Room is made ahead of the fast loop, which then needs no checks.
class PickleStack {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  size_t capacity() const { return room_.size(); }
  Value back() const { return room_[size_ - 1]; }
  Value front() const { return room_.front(); }
  Value operator[](size_t at) const { return room_[at]; }
  std::span<const Value> last(size_t count) const { return {room_.data() + size_ - count, count}; }
  void push(Value value) {
    make_room(1);
    room_[size_++] = value;
  }
  void drop_to(size_t size) { size_ = size; }

  void make_room(size_t count) {
    if (room_.size() - size_ < count) room_.resize(std::max(2 * room_.size(), size_ + count));
  }
  Value* data() { return room_.data(); }

 private:
  std::vector<Value> room_;
  size_t size_ = 0;
};

}  // namespace firelane::importer
