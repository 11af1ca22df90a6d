// The recorder's clock: a tick is one count of the processor's time stamp counter where
// that counter is invariant, one nanosecond of CLOCK_MONOTONIC elsewhere.
//
// Reading costs about 7 ns by TSC, 20 ns by clock_gettime. Ticks become Unix time by two
// paired readings (ClockPair), one at the start and one at the stop of a recording: the
// line through both needs no assumption about the frequency and follows the system's
// own corrections of it. Thread-safe; nothing here allocates, waits or throws.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace firelane {

enum class TickSource : uint8_t { kMonotonic = 0, kTsc = 1 };

namespace clock_detail {
extern const TickSource g_source;  // decided once, before main
uint64_t monotonic_ns() noexcept;
}  // namespace clock_detail

// Which clock now_ticks() reads. kMonotonic when the TSC is not invariant, when the kernel
// does not trust it (its clock source is not "tsc"), or when FIRELANE_CLOCK=monotonic.
inline TickSource tick_source() noexcept { return clock_detail::g_source; }

// Now. Comparable between threads; never meaningful between machines or boots.
inline uint64_t now_ticks() noexcept {
#if defined(__x86_64__)
  if (clock_detail::g_source == TickSource::kTsc) [[likely]]
    return __rdtsc();
#endif
  return clock_detail::monotonic_ns();
}

// One moment on three clocks.
struct ClockPair {
  uint64_t ticks = 0;
  int64_t monotonic_ns = 0;  // CLOCK_MONOTONIC
  int64_t unix_ns = 0;       // CLOCK_REALTIME
};

// Reads the clocks a few times and keeps the tightest reading (well below 1 us apart).
ClockPair read_clock_pair() noexcept;

// Turns ticks into nanoseconds by the line through two pairs.
class TickConverter {
 public:
  TickConverter() = default;
  // `stop` may equal `start` (a recording that was killed): then `ticks_per_second`, as
  // measured at the start, gives the slope.
  TickConverter(const ClockPair& start, const ClockPair& stop, double ticks_per_second);

  // CLOCK_MONOTONIC at `ticks`, which may lie before the start; the start's own time when they
  // lie more than 31 years apart.
  int64_t monotonic_ns(uint64_t ticks) const;
  int64_t unix_ns(uint64_t ticks) const { return monotonic_ns(ticks) + unix_offset_ns_; }
  double ns_per_tick() const { return ns_per_tick_; }

 private:
  uint64_t start_ticks_ = 0;
  int64_t start_ns_ = 0;
  int64_t unix_offset_ns_ = 0;  // CLOCK_REALTIME - CLOCK_MONOTONIC at the start
  double ns_per_tick_ = 1;
};

// Ticks in a second: 1e9 for kMonotonic; else measured against CLOCK_MONOTONIC since
// the library was loaded. Waits until that is 2 ms ago; better after a second.
double ticks_per_second() noexcept;

}  // namespace firelane
