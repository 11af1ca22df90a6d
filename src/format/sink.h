// Where a .lane file's bytes go: a file, or a disk that a test simulates.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace firelane::format {

// Functions that return a string return "" or the reason why not, without the sink's name ("No space left on device").
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Sets aside room for the next `bytes`: they can be written even if the disk fills up in the meantime. After a
  // failure, room set aside earlier is still there.
  virtual std::string reserve(size_t /*bytes*/) { return {}; }
  // All of `bytes`. After a failure the next write starts at the same place.
  virtual std::string write(std::string_view bytes) = 0;
  virtual std::string name() const = 0;
  // The file is complete: gives back the room that is left. Nothing is written after this.
  virtual void close() noexcept {}
  // In a forked child: closes the file without touching it.
  virtual void abandon() noexcept {}
};

// Creates (or replaces) a file. Null and `error` filled when that is not possible.
std::unique_ptr<ByteSink> open_file_sink(const std::filesystem::path& path, std::string& error);

}  // namespace firelane::format
