#include "report/quantity.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace firelane::report {

std::string format_duration(int64_t ns) {
  const double magnitude = std::abs(static_cast<double>(ns));
  if (magnitude < 1e3) return fmt::format("{} ns", ns);
  if (magnitude < 999999.5) return fmt::format("{:.3f} us", static_cast<double>(ns) / 1e3);
  if (magnitude < 999999500.0) return fmt::format("{:.3f} ms", static_cast<double>(ns) / 1e6);
  return fmt::format("{:.3f} s", static_cast<double>(ns) / 1e9);
}

std::string format_bytes(int64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double number = static_cast<double>(bytes);
  if (std::abs(number) < 1024) return fmt::format("{} B", bytes);
  size_t unit = 0;
  for (number /= 1024; std::abs(number) >= 1023.995 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
  return fmt::format("{:.2f} {}", number, kUnits[unit]);
}

std::string format_bandwidth(double gb_s) { return fmt::format("{:.2f} GB/s", gb_s); }

std::string format_percent(double percent) { return fmt::format("{:.2f}%", percent); }

}  // namespace firelane::report
