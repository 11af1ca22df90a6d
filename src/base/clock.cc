#include "base/clock.h"

#include <time.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/environment.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace firelane {
namespace {

int64_t read_ns(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

#if defined(__x86_64__)
bool tsc_is_invariant() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
}

// The kernel watches the TSC and leaves it when sockets disagree; inside a virtual machine
// kvm-clock and the Hyper-V clock are TSCs too. No answer (no /sys) counts as trust.
bool kernel_trusts_tsc() noexcept {
  char name[32] = "";
  std::FILE* file = std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
  if (file == nullptr) return true;
  const size_t got = std::fread(name, 1, sizeof name - 1, file);
  std::fclose(file);
  name[got] = 0;
  return std::strncmp(name, "tsc", 3) == 0 || std::strncmp(name, "kvm-clock", 9) == 0 ||
         std::strncmp(name, "hyperv", 6) == 0;
}
#endif

TickSource choose_source() noexcept {
#if defined(__x86_64__)
  const char* asked = environment::value_of(environment::kClock);
  if (asked != nullptr && std::strcmp(asked, "monotonic") == 0) return TickSource::kMonotonic;
  if (tsc_is_invariant() && kernel_trusts_tsc()) return TickSource::kTsc;
#endif
  return TickSource::kMonotonic;
}

}  // namespace

const TickSource clock_detail::g_source = choose_source();

// Where the slope is measured from: the library's load, so that a recording started later
// than 2 ms after it need not wait. After g_source: it reads the ticks.
static const ClockPair g_load = read_clock_pair();

uint64_t clock_detail::monotonic_ns() noexcept { return static_cast<uint64_t>(read_ns(CLOCK_MONOTONIC)); }

ClockPair read_clock_pair() noexcept {
  ClockPair best;
  uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const uint64_t before = now_ticks();
    const int64_t monotonic = read_ns(CLOCK_MONOTONIC);
    const int64_t unix_time = read_ns(CLOCK_REALTIME);
    const uint64_t after = now_ticks();
    if (after - before >= best_width) continue;
    best_width = after - before;
    // CLOCK_MONOTONIC was read about a third into the interval.
    best = {.ticks = before + (after - before) / 3, .monotonic_ns = monotonic, .unix_ns = unix_time};
  }
  return best;
}

double ticks_per_second() noexcept {
  if (tick_source() == TickSource::kMonotonic) return 1e9;
  static std::atomic<double> known{0};
  if (const double rate = known.load(std::memory_order_relaxed); rate > 0) return rate;
  ClockPair now = read_clock_pair();
  while (now.monotonic_ns - g_load.monotonic_ns < 2'000'000) now = read_clock_pair();
  const double rate =
      static_cast<double>(now.ticks - g_load.ticks) * 1e9 / static_cast<double>(now.monotonic_ns - g_load.monotonic_ns);
  // The longer the base, the better: keep the number only once the base is a second.
  if (now.monotonic_ns - g_load.monotonic_ns > 1'000'000'000) known.store(rate, std::memory_order_relaxed);
  return rate;
}

TickConverter::TickConverter(const ClockPair& start, const ClockPair& stop, double ticks_per_second)
    : start_ticks_(start.ticks), start_ns_(start.monotonic_ns), unix_offset_ns_(start.unix_ns - start.monotonic_ns) {
  if (std::isfinite(ticks_per_second) && ticks_per_second >= 1e3 && ticks_per_second <= 1e12) {
    ns_per_tick_ = 1e9 / ticks_per_second;
  }
  // Readings closer than 1 ms say less about the slope than the rate measured at the start.
  const int64_t ns = stop.monotonic_ns - start.monotonic_ns;
  const auto ticks = static_cast<int64_t>(stop.ticks - start.ticks);
  if (ns > 1'000'000 && ticks > 0) {
    const double slope = static_cast<double>(ns) / static_cast<double>(ticks);
    if (slope > ns_per_tick_ * 0.9 && slope < ns_per_tick_ * 1.1) ns_per_tick_ = slope;
  }
}

int64_t TickConverter::monotonic_ns(uint64_t ticks) const {
  const double since = static_cast<double>(static_cast<int64_t>(ticks - start_ticks_)) * ns_per_tick_;
  // A damaged file can hold any tick; 31 years keep the sum inside of int64.
  if (!(since > -1e18 && since < 1e18)) return start_ns_;
  return start_ns_ + std::llround(since);
}

}  // namespace firelane
