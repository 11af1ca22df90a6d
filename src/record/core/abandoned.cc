#include "record/core/abandoned.h"

#include <signal.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>

namespace firelane::record {

namespace fs = std::filesystem;

namespace {

constexpr auto kKept = std::chrono::hours(24);

// 0 when `name` is not one of ours.
pid_t process_in(std::string_view name) {
  constexpr std::string_view kPrefix = "firelane-";
  if (!name.starts_with(kPrefix) || !name.ends_with(".lane")) return 0;
  pid_t process = 0;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), process);
  return error == std::errc() && *end == '-' && process > 0 ? process : 0;
}

bool is_running(pid_t process) { return ::kill(process, 0) == 0 || errno != ESRCH; }

}  // namespace

void remove_abandoned(const fs::path& folder) noexcept {
  try {
    const auto oldest = fs::file_time_type::clock::now() - kKept;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const pid_t process = process_in(entry->path().filename().native());
      if (process == 0 || is_running(process)) continue;
      std::error_code ignored;
      const auto written = entry->last_write_time(ignored);
      if (!ignored && written < oldest && entry->is_regular_file(ignored)) fs::remove(entry->path(), ignored);
    }
  } catch (...) {
    // Out of memory: the files can wait.
  }
}

}  // namespace firelane::record
