// Reads another process's memory without stopping it, many places by one system call.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace firelane::live {

inline constexpr uint64_t kPageSize = 4096;

class Memory {
 public:
  explicit Memory(pid_t pid) : pid_(pid) {}
  // As if a process had these bytes at `address`, and nothing else: for tests and fuzzing. They have to outlive this.
  Memory(std::span<const uint8_t> bytes, uint64_t address) : pid_(0), bytes_(bytes), address_(address) {}

  // All of it, or false.
  bool read(uint64_t address, void* into, size_t bytes) const;

  // From the beginning up to what is not there: how many bytes that were.
  size_t read_some(uint64_t address, void* into, size_t bytes) const;

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
  // As process_vm_readv.
  ssize_t transfer(const struct iovec* own, size_t own_count, const struct iovec* other, size_t other_count) const;

  pid_t pid_;
  std::span<const uint8_t> bytes_;  // with pid 0
  uint64_t address_ = 0;
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
