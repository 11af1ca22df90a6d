// A file in memory, not read as a whole: libraries are large, and what is looked at in them a small part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace firelane::live {

class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Empty if it could not be opened, and for anything but a regular file.
  std::span<const uint8_t> bytes() const { return {static_cast<const uint8_t*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace firelane::live
