#include "import/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace firelane::importer {

const std::string& ByteSource::fatal() const {
  static const std::string kNone;
  return kNone;
}

namespace {

class FileSource : public ByteSource {
 public:
  FileSource(int fd, const struct stat& status)
      : fd_(fd), size_(static_cast<uint64_t>(status.st_size)), opened_(status) {}
  ~FileSource() override { ::close(fd_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  size_t read(char* out, size_t size) override {
    const size_t got = read_fully(offset_, out, size);
    if (got < size && offset_ + got < size_) ++losses_[Stat::kTruncated];  // the disk gave up, or the file shrank
    offset_ += got;
    return got;
  }

  Result<size_t> read_at(uint64_t offset, char* out, size_t size) const override {
    struct stat now = {};
    if (::fstat(fd_, &now) != 0 || now.st_size != opened_.st_size || now.st_mtim.tv_sec != opened_.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != opened_.st_mtim.tv_nsec) {
      return Error{"the trace file changed after it was opened; open it again"};
    }
    return read_fully(offset, out, size);
  }

  uint64_t consumed_bytes() const override { return offset_; }
  uint64_t total_bytes() const override { return size_; }

 private:
  size_t read_fully(uint64_t offset, char* out, size_t size) const {
    size_t done = 0;
    while (done < size) {
      const ssize_t got = ::pread(fd_, out + done, size - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  int fd_;
  uint64_t size_;
  struct stat opened_;
  uint64_t offset_ = 0;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}

  size_t read(char* out, size_t size) override {
    const size_t got = copy(offset_, out, size);
    offset_ += got;
    return got;
  }
  Result<size_t> read_at(uint64_t offset, char* out, size_t size) const override { return copy(offset, out, size); }
  uint64_t consumed_bytes() const override { return offset_; }
  uint64_t total_bytes() const override { return bytes_.size(); }

 private:
  size_t copy(uint64_t offset, char* out, size_t size) const {
    if (offset >= bytes_.size()) return 0;
    const size_t got = std::min(size, bytes_.size() - offset);
    std::memcpy(out, bytes_.data() + offset, got);
    return got;
  }

  std::string bytes_;
  size_t offset_ = 0;
};

// Pipes can be read only once, and args are read a second time: a copy on disk serves both.
Result<int> spool_standard_input() {
  FILE* spool = std::tmpfile();
  if (spool == nullptr) return Error{std::string("standard input: no temporary file: ") + std::strerror(errno)};
  const int fd = ::dup(::fileno(spool));
  std::fclose(spool);
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) return fd;
    if (got < 0 || ::write(fd, buffer.data(), static_cast<size_t>(got)) != got) {
      const Error error{std::string("standard input: ") + std::strerror(errno)};
      ::close(fd);
      return error;
    }
  }
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file(const std::string& path) {
  int fd = -1;
  if (path == "-") {
    FL_TRY(fd, spool_standard_input());
  } else {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (fd < 0) return Error{path + ": " + std::strerror(errno)};
  struct stat status = {};
  std::string trouble;
  if (::fstat(fd, &status) != 0) trouble = std::strerror(errno);
  if (S_ISDIR(status.st_mode)) trouble = "a directory; name one trace file in it";
  if (trouble.empty() && !S_ISREG(status.st_mode)) trouble = "not a regular file; copy it to one, or pipe it in with -";
  if (!trouble.empty()) {
    ::close(fd);
    return Error{path + ": " + trouble};
  }
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(fd, status));
}

std::unique_ptr<ByteSource> open_memory(std::string bytes) { return std::make_unique<MemorySource>(std::move(bytes)); }

}  // namespace firelane::importer
