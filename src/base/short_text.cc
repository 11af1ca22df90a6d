#include "base/short_text.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace firelane {

namespace {

std::string formatted(const char* format, double number) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

}  // namespace

std::string short_time(int64_t ns) {
  const auto number = static_cast<double>(ns);
  const double magnitude = std::abs(number);
  if (magnitude < 999.5) return std::to_string(ns) + " ns";
  if (magnitude < 999'950) return formatted("%.1f us", number / 1e3);
  if (magnitude < 999'950'000.0) return formatted("%.1f ms", number / 1e6);
  return formatted("%.2f s", number / 1e9);
}

std::string short_percent(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < 0.1) return "<0.1%";
  return formatted(percent < 9.95 ? "%.1f%%" : "%.0f%%", percent);
}

std::string short_bytes(int64_t bytes) {
  static constexpr std::array<const char*, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
  auto number = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(number) >= 1023.5 && unit + 1 < kUnits.size()) {
    number /= 1024;
    ++unit;
  }
  return formatted(unit == 0 || std::abs(number) >= 99.95 ? "%.0f " : "%.1f ", number) + kUnits[unit];
}

std::string counted(int64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace firelane
