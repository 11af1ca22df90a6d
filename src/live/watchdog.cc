#include "live/watchdog.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/own_thread.h"
#include "live/process.h"
#include "live/python.h"
#include "live/stack_reader.h"
#include "live/stacks_text.h"
#include "live/unwinder.h"

namespace firelane::live {

namespace {

constexpr int64_t kParts = 8;  // of the limit: a process that is stopped as a whole loses one of them at most
constexpr int64_t kLongestPart_ms = 1000;

// Who has the GIL of this process.
class OwnGil {
 public:
  uint64_t holder() {
    if (!is_opened_) {
      is_opened_ = true;
      const auto process = look_at(::getpid());
      if (!process.ok()) return 0;
      const auto python = find_python(process.value());
      if (!python.ok()) return 0;
      if (auto reader = StackReader::open(process.value(), python.value()); reader.ok())
        reader_.emplace(std::move(reader).value());
    }
    return reader_ ? reader_->gil_holder() : 0;
  }

 private:
  bool is_opened_ = false;
  std::optional<StackReader> reader_;
};

void write_whole(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  {
    std::ofstream out(part, std::ios::binary);
    out << text;
    if (!out.flush()) return;  // a full disk: nothing is better than half
  }
  (void)std::rename(part.c_str(), path.c_str());
}

std::string utc_now() {
  const time_t now = ::time(nullptr);
  struct tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text;
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

void write_incident(const std::string& folder, int64_t step, int64_t limit_ms) {
  std::array<char, 32> name;
  (void)std::snprintf(name.data(), name.size(), "/step-%09lld-hang", static_cast<long long>(step));
  const std::string path = folder + name.data();
  ::mkdir(folder.c_str(), 0777);
  ::mkdir(path.c_str(), 0777);
  const auto process = look_at(::getpid());
  const auto stacks = [&](bool native) -> Result<std::string> {
    if (!process.ok()) return process.error();
    return stacks_text(process.value(), {.native = native, .left_out = static_cast<pid_t>(::syscall(SYS_gettid))});
  };
  const auto python = stacks(/*native=*/false);
  write_whole(path + "/stacks.txt", python.ok() ? python.value() : python.error().message + "\n");
  std::array<char, 160> line;
  (void)std::snprintf(
      line.data(), line.size(),
      "hang: no step for at least %.1f s after step %lld: a thread keeps the GIL, and no other Python thread runs (",
      static_cast<double>(limit_ms) / 1e3, static_cast<long long>(step - 1));
  write_whole(path + "/incident.txt", line.data() + utc_now() + ")\n");
  // Takes longer, and reads files of libraries, whose disk might not answer.
  if (const auto native = stacks(/*native=*/true); native.ok()) write_whole(path + "/stacks.txt", native.value());
}

}  // namespace

struct Watchdog::Shared {
  std::string folder;
  Holder holder_now;
  std::mutex mutex;
  std::condition_variable changed;
  int64_t step = 0;
  int64_t limit_ms = 0;
  int64_t silent_ms = 0;
  uint64_t feed_count = 0;
  uint64_t holder = 0;  // of the GIL, at every look since half of the limit; 0: it changed, or it was free
  int64_t incident = -1;
  bool is_told = false;
  bool is_over = false;
  bool has_ended = false;
};

Watchdog::Watchdog(std::string folder, Holder holder) : shared_(std::make_shared<Shared>()), process_(::getpid()) {
  (void)load_libdw();
  shared_->folder = std::move(folder);
  shared_->holder_now = holder ? std::move(holder) : [gil = std::make_shared<OwnGil>()] { return gil->holder(); };
  std::thread thread = start_own_thread("firelane-watch", [shared = shared_] {
    try {
      watch(*shared);
    } catch (const std::exception&) {  // no memory: the program goes on without
    }
    const std::lock_guard lock(shared->mutex);
    shared->has_ended = true;
    shared->changed.notify_all();
  });
  if (thread.joinable()) {
    thread.detach();
  } else {  // no more threads: the program goes on without
    shared_->has_ended = true;
  }
}

Watchdog::~Watchdog() {
  if (process_ == ::getpid()) {
    (void)end(std::chrono::milliseconds(0));
  } else {
    new std::shared_ptr<Shared>(shared_);  // never freed: a lock in it may be held for good
  }
}

bool Watchdog::end(std::chrono::milliseconds longest_wait) {
  if (process_ != ::getpid()) return true;
  std::unique_lock lock(shared_->mutex);
  shared_->is_over = true;
  shared_->changed.notify_all();
  return shared_->changed.wait_for(lock, longest_wait, [&] { return shared_->has_ended; });
}

void Watchdog::feed(int64_t step, int64_t limit_ms) {
  if (process_ != ::getpid()) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->step = step;
  if (std::exchange(shared_->limit_ms, limit_ms) != limit_ms) shared_->changed.notify_all();
  shared_->silent_ms = 0;
  shared_->is_told = false;
  ++shared_->feed_count;
}

int64_t Watchdog::take_incident() {
  if (process_ != ::getpid()) return -1;
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->incident, -1);
}

void Watchdog::watch(Shared& shared) {
  std::unique_lock lock(shared.mutex);
  while (!shared.is_over) {
    const int64_t part_ms =
        shared.limit_ms > 0 ? std::clamp<int64_t>(shared.limit_ms / kParts, 1, kLongestPart_ms) : kLongestPart_ms;
    const int64_t limit_ms = shared.limit_ms;
    const uint64_t feed_count = shared.feed_count;
    shared.changed.wait_for(lock, std::chrono::milliseconds(part_ms),
                            [&] { return shared.is_over || shared.limit_ms != limit_ms; });
    if (shared.feed_count != feed_count) continue;  // not all of this part was silent
    const bool was_early = 2 * shared.silent_ms < limit_ms;
    shared.silent_ms += part_ms;
    if (shared.is_over || shared.is_told || limit_ms <= 0 || 2 * shared.silent_ms < limit_ms) continue;
    const int64_t step = shared.step;
    // feed() is called with the GIL held, and must neither wait for a look nor for files.
    lock.unlock();
    uint64_t holder = 0;
    try {
      holder = shared.holder_now();
    } catch (...) {  // no memory for it: as if nobody had it
    }
    lock.lock();
    if (shared.is_over || shared.feed_count != feed_count) continue;
    shared.holder = was_early || shared.holder == holder ? holder : 0;
    if (shared.silent_ms < limit_ms) continue;
    shared.silent_ms = 0;
    if (shared.holder == 0) continue;  // others see a hang that leaves them the GIL
    shared.is_told = true;
    shared.incident = step;  // now, so that nobody else writes about this step meanwhile
    lock.unlock();
    try {
      write_incident(shared.folder, step, limit_ms);
    } catch (...) {  // no memory, no files: what was written stays
    }
    lock.lock();
  }
}

}  // namespace firelane::live
