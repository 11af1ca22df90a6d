// Numbers in few bytes: 7 bits a byte, low bits first, the top bit says that more follow.
// Signed numbers are folded first (zigzag), so that small negatives stay short.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace firelane {

inline constexpr size_t kMaxVarintBytes = 10;

constexpr uint64_t zigzag(int64_t n) { return static_cast<uint64_t>(n) << 1 ^ static_cast<uint64_t>(n >> 63); }
constexpr int64_t unzigzag(uint64_t n) { return static_cast<int64_t>(n >> 1 ^ (~(n & 1) + 1)); }

// REQUIRES: room for kMaxVarintBytes at `out`. Returns the first byte after the number.
inline char* write_varint(char* out, uint64_t n) {
  while (n >= 0x80) {
    *out++ = static_cast<char>(n | 0x80);
    n >>= 7;
  }
  *out++ = static_cast<char>(n);
  return out;
}

inline void append_varint(std::string& out, uint64_t n) {
  char bytes[kMaxVarintBytes];
  out.append(bytes, static_cast<size_t>(write_varint(bytes, n) - bytes));
}
inline void append_zigzag(std::string& out, int64_t n) { append_varint(out, zigzag(n)); }
inline void append_text(std::string& out, std::string_view text) {
  append_varint(out, text.size());
  out.append(text);
}
// Fixed width, little-endian (as is every machine we run on).
template <typename T>
void append_fixed(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

// Reads what the functions above wrote. After the first read beyond the end (or an overlong
// number) ok() is false and every read gives 0 or "": check once, after a group of reads.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool ok() const { return ok_; }
  bool empty() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  uint64_t varint() {
    if (at_ != end_ && static_cast<signed char>(*at_) >= 0) return static_cast<unsigned char>(*at_++);
    return long_varint();
  }
  int64_t signed_varint() { return unzigzag(varint()); }
  template <typename T>
  T fixed() {
    T value{};
    if (left() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string_view bytes(uint64_t count) {
    if (count > left()) {
      fail();
      return {};
    }
    const std::string_view result(at_, static_cast<size_t>(count));
    at_ += count;
    return result;
  }
  std::string_view text() { return bytes(varint()); }

 private:
  void fail() {
    ok_ = false;
    at_ = end_;
  }
  uint64_t long_varint() {
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 70 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      if (shift == 63 && byte > 1) break;  // more than 64 bits
      n |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return n;
    }
    fail();
    return 0;
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool ok_ = true;
};

}  // namespace firelane
