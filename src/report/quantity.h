// Numbers for people: durations, sizes, rates. JSON and CSV carry the plain numbers.
#pragma once

#include <cstdint>
#include <string>

namespace firelane::report {

std::string format_duration(int64_t ns);     // "850 ns", "12.345 us", "1.234 ms", "2.500 s"
std::string format_bytes(int64_t bytes);     // "512 B", "1.50 KiB", "139.80 GiB"
std::string format_bandwidth(double gb_s);   // "1.23 GB/s", 1 GB = 1e9 bytes
std::string format_percent(double percent);  // "12.34%"

}  // namespace firelane::report
