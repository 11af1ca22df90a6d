// Numbers in sentences: short, with one decimal where it matters.
#pragma once

#include <cstdint>
#include <string>

namespace firelane {

std::string short_time(int64_t ns);                                     // "850 ns", "12.3 us", "14.8 ms", "2.50 s"
std::string short_percent(double share);                                // 0..1: "64%", "4.2%", "<0.1%"
std::string short_bytes(int64_t bytes);                                 // "512 B", "3.5 KiB", "296 MiB", "1.5 GiB"
std::string counted(int64_t count, const char* one, const char* many);  // "1 call", "3 calls"

}  // namespace firelane
