// Reads another process's memory without stopping it, many places by one system call.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace firelane::live {

class Memory {
 public:
  explicit Memory(pid_t pid) : pid_(pid) {}

  // All of it, or false.
  bool read(uint64_t address, void* into, size_t bytes) const;

  template <typename T>
  std::optional<T> read(uint64_t address) const {
    T out;
    return read(address, &out, sizeof(T)) ? std::optional<T>(out) : std::nullopt;
  }

  // Reads that are collected and then made together.
  void add(uint64_t address, void* into, size_t bytes);
  // Makes those that were added, in their order, and forgets them. False for a part that could not be read.
  const std::vector<bool>& read_all();

 private:
  pid_t pid_;
  std::vector<struct iovec> own_;
  std::vector<struct iovec> other_;
  std::vector<bool> done_;
};

// The T at `offset` of bytes that were read.
template <typename T>
T value_at(const uint8_t* bytes, size_t offset) {
  T out;
  std::memcpy(&out, bytes + offset, sizeof(T));
  return out;
}

}  // namespace firelane::live
