// Ticks and what they mean in nanoseconds.
#include "base/clock.h"

#include <gtest/gtest.h>

namespace firelane {
namespace {

TEST(Clock, ticks_go_forward_and_pairs_are_ordered) {
  const ClockPair a = read_clock_pair();
  const ClockPair b = read_clock_pair();
  EXPECT_LE(a.ticks, b.ticks);
  EXPECT_LE(a.monotonic_ns, b.monotonic_ns);
}

TEST(Clock, converter_follows_the_line_through_both_pairs) {
  const ClockPair start{.ticks = 1000, .monotonic_ns = 50, .unix_ns = 1'000'050};
  const ClockPair stop{.ticks = 1000 + 6'000'000, .monotonic_ns = 50 + 2'000'000, .unix_ns = 3'000'050};
  const TickConverter convert(start, stop, 2.9e9);
  EXPECT_EQ(convert.monotonic_ns(1000), 50);
  EXPECT_EQ(convert.monotonic_ns(1000 + 3'000'000), 50 + 1'000'000);
  EXPECT_EQ(convert.unix_ns(1000 + 3), 1'000'051);
  EXPECT_EQ(convert.monotonic_ns(1000 - 300), -50);
}

TEST(Clock, without_a_stop_the_measured_rate_gives_the_slope) {
  const ClockPair start{.ticks = 0, .monotonic_ns = 0, .unix_ns = 0};
  EXPECT_EQ(TickConverter(start, start, 2e9).monotonic_ns(2'000'000), 1'000'000);
}

TEST(Clock, ticks_agree_with_clock_gettime) {
  const ClockPair start = read_clock_pair();
  const double rate = ticks_per_second();
  ClockPair stop = read_clock_pair();
  while (stop.monotonic_ns - start.monotonic_ns < 20'000'000) stop = read_clock_pair();
  const double by_ticks = static_cast<double>(stop.ticks - start.ticks) / rate * 1e9;
  EXPECT_NEAR(by_ticks, static_cast<double>(stop.monotonic_ns - start.monotonic_ns), 200'000);
}

}  // namespace
}  // namespace firelane
