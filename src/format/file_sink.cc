// A ByteSink on a file descriptor. Writes whole chunks or takes the torn piece back.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "format/sink.h"

namespace firelane::format {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

class FileSink final : public ByteSink {
 public:
  FileSink(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  ~FileSink() override { abandon(); }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  std::string write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        const int error = n < 0 ? errno : ENOSPC;
        // Without this the file would end in half a chunk; the reader copes when it fails.
        if (::ftruncate(fd_, size_) != 0) return reason(error) + " (and the torn end could not be cut off)";
        return reason(error);
      }
      bytes.remove_prefix(static_cast<size_t>(n));
      written_ += n;
    }
    size_ = written_;
    return {};
  }
  std::string name() const override { return name_; }
  void abandon() noexcept override {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  std::string name_;
  off_t size_ = 0;  // of all complete writes
  off_t written_ = 0;
};

}  // namespace

std::unique_ptr<ByteSink> open_file_sink(const std::filesystem::path& path, std::string& error) {
  // A new file, never one's neighbour's: temporary folders are shared, so links are not followed.
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) {
    error = reason(errno);
    return nullptr;
  }
  return std::make_unique<FileSink>(fd, path.string());
}

}  // namespace firelane::format
