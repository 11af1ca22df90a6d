#include "live/thread_clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace firelane::live {

namespace {

constexpr uint32_t kLongestPause = 32;  // looks
constexpr int64_t kMostCredit = 4;      // intervals: what ran long ago says nothing of now

}  // namespace

ThreadClock::ThreadClock(pid_t process, pid_t thread) {
  const std::string path = "/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/schedstat";
  if (thread != 0) file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

ThreadClock::ThreadClock(ThreadClock&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      run_ns_(other.run_ns_),
      credit_ns_(other.credit_ns_),
      pause_(other.pause_),
      next_pause_(other.next_pause_) {}

ThreadClock::~ThreadClock() {
  if (file_ >= 0) ::close(file_);
}

bool ThreadClock::was_on_cpu(int64_t interval_ns, bool has_moved) {
  if (has_moved) pause_ = next_pause_ = 0;
  if (pause_ > 0) {
    --pause_;
  } else if (file_ >= 0) {
    std::array<char, 64> text;
    const ssize_t size = ::pread(file_, text.data(), text.size(), 0);
    int64_t run_ns = 0;
    if (size > 0) std::from_chars(text.data(), text.data() + size, run_ns);
    const int64_t ran_ns = run_ns_ < 0 || size <= 0 ? 0 : run_ns - run_ns_;
    if (size > 0) run_ns_ = run_ns;
    credit_ns_ = std::min(credit_ns_ + ran_ns, kMostCredit * interval_ns);
    next_pause_ = ran_ns > 0 ? 0 : std::min(kLongestPause, std::max(1u, next_pause_ * 2));
    pause_ = next_pause_;
  }
  if (credit_ns_ * 2 < interval_ns) return false;
  credit_ns_ -= interval_ns;
  return true;
}

}  // namespace firelane::live
