// A ByteSink on a file descriptor.
//
// Room is set aside by writing zeros after the last chunk; later chunks overwrite them. Every file system can do that,
// and those that allocate late still count the bytes at once. fallocate would leave no zeros behind in a killed
// program's file, but on ext4 the allocated blocks made each recording's end wait for the disk (3 ms instead of 0.03).
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "format/sink.h"

namespace firelane::format {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

class FileSink final : public ByteSink {
 public:
  FileSink(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  ~FileSink() override { close(); }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  std::string reserve(size_t bytes) override {
    const int error = extend(size_ + static_cast<off_t>(bytes));
    return error == 0 ? std::string() : reason(error);
  }

  std::string write(std::string_view bytes) override {
    if (const int error = write_at(size_, bytes); error != 0) return reason(error);
    size_ += static_cast<off_t>(bytes.size());
    reserved_ = std::max(reserved_, size_);
    return {};
  }

  std::string name() const override { return name_; }

  void close() noexcept override {
    // Cuts off what a failed write left, and frees the room beyond the end. Readers cope when it fails.
    if (fd_ >= 0) (void)!::ftruncate(fd_, size_);
    abandon();
  }

  void abandon() noexcept override {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  // 0 or an errno.
  int extend(off_t end) {
    if (end <= reserved_) return 0;
    // Beyond this limit a write sends SIGXFSZ, which ends most programs.
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && static_cast<rlim_t>(end) > limit.rlim_cur) return EFBIG;
    const std::string zeros(static_cast<size_t>(end - reserved_), '\0');
    if (const int error = write_at(reserved_, zeros); error != 0) return error;
    reserved_ = end;
    return 0;
  }

  int write_at(off_t at, std::string_view bytes) noexcept {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return n < 0 ? errno : ENOSPC;
      bytes.remove_prefix(static_cast<size_t>(n));
      at += n;
    }
    return 0;
  }

  int fd_;
  std::string name_;
  off_t size_ = 0;      // of all complete writes
  off_t reserved_ = 0;  // up to here the disk has room for this file; zeros from size_ on
};

}  // namespace

std::unique_ptr<ByteSink> open_file_sink(const std::filesystem::path& path, std::string& error) {
  // Always a new file: temporary folders are shared with other users, so links are not followed.
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) {
    error = reason(errno);
    return nullptr;
  }
  return std::make_unique<FileSink>(fd, path.string());
}

}  // namespace firelane::format
