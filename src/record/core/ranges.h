// User annotations by their own functions, not through torch: the ranges of the Python module and of the C++ Scope.
#pragma once

#include <cstdint>
#include <string_view>

namespace firelane::record {

// 0 when nothing is recorded. `args`: a JSON object or empty.
uint64_t begin_range(std::string_view name, std::string_view args) noexcept;
void end_range(uint64_t id) noexcept;
void mark_instant(std::string_view name) noexcept;
void mark_counter(std::string_view name, double value) noexcept;
void name_thread(std::string_view name) noexcept;

}  // namespace firelane::record
