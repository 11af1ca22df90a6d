// Whole files in memory and gzip inflated by ISA-L alone: what the benchmarks compare the loader with.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace firelane::bench {

// Prints the message and ends the process: a benchmark has no caller to tell.
[[noreturn]] void fail(const std::string& message);

std::string read_file(const std::string& path);

// Inflates every member, a buffer of 1 MiB at a time.
void inflate(std::string_view gzip, const std::function<void(std::string_view)>& visit);

// The file's content, inflated if it is gzip.
std::string read_content(const std::string& path);

}  // namespace firelane::bench
