#include "live/thread_clock.h"

#include <fcntl.h>
#include <sys/resource.h>
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
constexpr rlim_t kFilesForOthers = 32;  // left for everything else that this process opens, short looks included

int open_schedstat(pid_t process, pid_t thread) {
  const std::string path = "/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/schedstat";
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

bool may_stay_open(int file) {
  struct rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || static_cast<rlim_t>(file) + kFilesForOthers < limit.rlim_cur;
}

}  // namespace

ThreadClock::ThreadClock(pid_t process, pid_t thread) : process_(process), thread_(thread) {
  if (thread == 0) return;
  file_ = open_schedstat(process, thread);
  if (file_ < 0 || may_stay_open(file_)) return;
  ::close(file_);
  file_ = -1;
}

ThreadClock::ThreadClock(ThreadClock&& other) noexcept
    : process_(other.process_),
      thread_(other.thread_),
      file_(std::exchange(other.file_, -1)),
      run_ns_(other.run_ns_),
      credit_ns_(other.credit_ns_),
      pause_(other.pause_),
      next_pause_(other.next_pause_) {}

ThreadClock::~ThreadClock() {
  if (file_ >= 0) ::close(file_);
}

int64_t ThreadClock::read_run_ns() const {
  const int file = file_ >= 0 || thread_ == 0 ? file_ : open_schedstat(process_, thread_);
  if (file < 0) return -1;
  std::array<char, 64> text;
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  if (file != file_) ::close(file);
  int64_t run_ns = -1;
  if (size > 0) std::from_chars(text.data(), text.data() + size, run_ns);
  return run_ns;
}

bool ThreadClock::was_on_cpu(int64_t interval_ns, bool has_moved) {
  if (has_moved) pause_ = next_pause_ = 0;
  if (pause_ > 0) {
    --pause_;
  } else {
    const int64_t run_ns = read_run_ns();
    const int64_t ran_ns = run_ns_ < 0 || run_ns < 0 ? 0 : run_ns - run_ns_;
    if (run_ns >= 0) run_ns_ = run_ns;
    credit_ns_ = std::min(credit_ns_ + ran_ns, kMostCredit * interval_ns);
    next_pause_ = ran_ns > 0 ? 0 : std::min(kLongestPause, std::max(1u, next_pause_ * 2));
    pause_ = next_pause_;
  }
  if (credit_ns_ * 2 < interval_ns) return false;
  credit_ns_ -= interval_ns;
  return true;
}

}  // namespace firelane::live
