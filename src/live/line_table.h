// Which line of the source an instruction belongs to: Python's line tables, of PEP 626 (3.10) and of 3.11 and later.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace firelane::live {

struct LineRange {
  uint32_t end = 0;   // of its instructions, in bytes from the code's beginning
  int32_t line = -1;  // -1: it has none
};

// Ranges by their ends. Hostile tables give wrong lines, not more.
std::vector<LineRange> lines_of(std::span<const uint8_t> table, int32_t first_line, bool is_location_table);

// The line of the instruction at `offset` bytes; `first_line` where the table has none.
int32_t line_at(const std::vector<LineRange>& ranges, uint32_t offset, int32_t first_line);

}  // namespace firelane::live
