// Where a .lane file's bytes go: a file, or a test's own idea of a disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace firelane::format {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // All of `bytes`, or the reason why not, without the sink's name ("No space left on device").
  // After a failure what was written of `bytes` has been taken back where possible.
  virtual std::string write(std::string_view bytes) = 0;
  virtual std::string name() const = 0;
  // In a forked child: let go of the file without touching it.
  virtual void abandon() noexcept {}
};

// Creates (or replaces) a file. Null and `error` filled when that is not possible.
std::unique_ptr<ByteSink> open_file_sink(const std::filesystem::path& path, std::string& error);

}  // namespace firelane::format
