#include "live/watchdog.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <utility>

#include "live/process.h"
#include "live/python.h"
#include "live/stack_reader.h"
#include "live/stacks_text.h"

namespace firelane::live {

namespace {

constexpr int64_t kParts = 8;  // of the limit: a process that is stopped as a whole loses one of them at most
constexpr int64_t kLongestPart_ms = 1000;

// Who has the GIL of this process.
class OwnGil {
 public:
  // The same for as long as one thread has it; 0 for nobody, and for a Python that cannot be read.
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
  const auto text = process.ok() ? stacks_text(process.value(), {.left_out = static_cast<pid_t>(::syscall(SYS_gettid))})
                                 : Result<std::string>(process.error());
  write_whole(path + "/stacks.txt", text.ok() ? text.value() : text.error().message + "\n");
  std::array<char, 160> line;
  (void)std::snprintf(
      line.data(), line.size(),
      "hang: no step for %.1f s after step %lld, and no other Python code ran: a thread keeps the GIL (",
      static_cast<double>(limit_ms) / 1e3, static_cast<long long>(step - 1));
  write_whole(path + "/incident.txt", line.data() + utc_now() + ")\n");  // last: who waits for it has the rest, too
}

}  // namespace

struct Watchdog::Shared {
  std::string folder;
  std::mutex mutex;
  std::condition_variable changed;
  int64_t step = 0;
  int64_t limit_ms = 0;
  int64_t silent_ms = 0;
  uint64_t holder = 0;  // of the GIL, at every look since half of the limit; 0: it changed, or it was free
  bool is_told = false;
  bool is_over = false;
  std::atomic<int64_t> incident = -1;
};

Watchdog::Watchdog(std::string folder) : shared_(std::make_shared<Shared>()), process_(::getpid()) {
  shared_->folder = std::move(folder);
  thread_ = std::thread([shared = shared_] { watch(shared); });
}

Watchdog::~Watchdog() {
  if (process_ != ::getpid()) {
    thread_.detach();
    new std::shared_ptr<Shared>(shared_);  // never freed: a lock in it may be held for good
    return;
  }
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_over = true;
  }
  shared_->changed.notify_all();
  thread_.join();
}

void Watchdog::feed(int64_t step, int64_t limit_ms) {
  if (process_ != ::getpid()) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->step = step;
  shared_->limit_ms = limit_ms;
  shared_->silent_ms = 0;
  shared_->is_told = false;
}

int64_t Watchdog::take_incident() { return shared_->incident.exchange(-1); }

void Watchdog::watch(const std::shared_ptr<Shared>& shared) {
  OwnGil gil;
  std::unique_lock lock(shared->mutex);
  while (!shared->is_over) {
    const int64_t part_ms =
        shared->limit_ms > 0 ? std::clamp<int64_t>(shared->limit_ms / kParts, 1, kLongestPart_ms) : kLongestPart_ms;
    shared->changed.wait_for(lock, std::chrono::milliseconds(part_ms));
    const bool was_early = 2 * shared->silent_ms < shared->limit_ms;
    shared->silent_ms += part_ms;
    if (shared->is_over || shared->is_told || shared->limit_ms <= 0 || 2 * shared->silent_ms < shared->limit_ms)
      continue;
    const uint64_t holder = gil.holder();
    shared->holder = was_early || shared->holder == holder ? holder : 0;
    if (shared->silent_ms < shared->limit_ms) continue;
    shared->silent_ms = 0;
    if (shared->holder == 0) continue;  // others see a hang that leaves them the GIL
    shared->is_told = true;
    const int64_t step = shared->step;
    const int64_t limit_ms = shared->limit_ms;
    lock.unlock();  // feed() must not wait for files
    write_incident(shared->folder, step, limit_ms);
    shared->incident = step;
    lock.lock();
  }
}

}  // namespace firelane::live
