#include "record/core/thread_times.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <system_error>
#include <utility>

namespace firelane::record {

ThreadTimesReader::~ThreadTimesReader() { close(); }

ThreadTimesReader::ThreadTimesReader(ThreadTimesReader&& other) noexcept
    : thread_(std::exchange(other.thread_, 0)), file_(std::exchange(other.file_, -1)) {}

ThreadTimesReader& ThreadTimesReader::operator=(ThreadTimesReader&& other) noexcept {
  if (this == &other) return *this;
  close();
  thread_ = std::exchange(other.thread_, 0);
  file_ = std::exchange(other.file_, -1);
  return *this;
}

void ThreadTimesReader::close() noexcept {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  thread_ = 0;
}

ThreadTimes ThreadTimesReader::read() noexcept {
  const auto thread = static_cast<pid_t>(::syscall(SYS_gettid));
  if (thread != thread_) {
    close();
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/task/%d/schedstat", thread);
    file_ = ::open(path.data(), O_RDONLY | O_CLOEXEC);
    thread_ = thread;
  }
  if (file_ < 0) return {};
  std::array<char, 96> text{};
  const ssize_t size = ::pread(file_, text.data(), text.size(), 0);
  if (size <= 0) return {};
  const char* const end = text.data() + size;
  uint64_t numbers[3] = {};  // ns on a core, ns without one, times it was given one
  const char* at = text.data();
  for (uint64_t& number : numbers) {
    while (at != end && *at == ' ') ++at;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return {};
    at = after;
  }
  if (numbers[2] == 0) return {};  // a system that does not count
  return {.ran_ns = static_cast<int64_t>(numbers[0]), .waited_ns = static_cast<int64_t>(numbers[1]), .thread = thread_};
}

}  // namespace firelane::record
