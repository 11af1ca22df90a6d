#include "live/line_table.h"

#include <algorithm>

namespace firelane::live {

namespace {

constexpr int8_t kNoLine = -128;
constexpr uint32_t kUnit = 2;  // bytes of an instruction
// Kinds of entries in a location table.
constexpr int kOneLine = 10;
constexpr int kNoColumns = 13;
constexpr int kLong = 14;
constexpr int kNone = 15;

// Wraps around instead of overflowing: tables come from memory that may change while it is read.
int32_t add(int32_t line, int64_t delta) {
  return static_cast<int32_t>(static_cast<uint32_t>(line) + static_cast<uint32_t>(delta));
}

// Six bits a byte, the lowest first; the seventh says that more follow.
int64_t signed_number(std::span<const uint8_t> table, size_t at) {
  uint64_t value = 0;
  for (unsigned shift = 0; at < table.size() && shift < 36; shift += 6) {
    const uint8_t byte = table[at++];
    value |= static_cast<uint64_t>(byte & 63) << shift;
    if ((byte & 64) == 0) break;
  }
  const auto size = static_cast<int64_t>(value >> 1);
  return (value & 1) != 0 ? -size : size;
}

std::vector<LineRange> from_locations(std::span<const uint8_t> table, int32_t line) {
  std::vector<LineRange> out;
  uint32_t end = 0;
  for (size_t at = 0; at < table.size();) {
    const uint8_t first = table[at++];
    const int kind = (first >> 3) & 15;
    end += ((first & 7u) + 1) * kUnit;
    if (kind >= kOneLine && kind < kNoColumns) line = add(line, kind - kOneLine);
    if (kind == kNoColumns || kind == kLong) line = add(line, signed_number(table, at));
    out.push_back({.end = end, .line = kind == kNone ? -1 : line});
    while (at < table.size() && (table[at] & 128) == 0) ++at;  // only an entry's first byte has this bit
  }
  return out;
}

std::vector<LineRange> from_pairs(std::span<const uint8_t> table, int32_t line) {
  std::vector<LineRange> out;
  uint32_t end = 0;
  for (size_t at = 0; at + 1 < table.size(); at += 2) {
    const auto delta = static_cast<int8_t>(table[at + 1]);
    end += table[at];
    if (delta != kNoLine) line = add(line, delta);
    out.push_back({.end = end, .line = delta == kNoLine ? -1 : line});
  }
  return out;
}

}  // namespace

std::vector<LineRange> lines_of(std::span<const uint8_t> table, int32_t first_line, bool is_location_table) {
  return is_location_table ? from_locations(table, first_line) : from_pairs(table, first_line);
}

int32_t line_at(const std::vector<LineRange>& ranges, uint32_t offset, int32_t first_line) {
  const auto found = std::upper_bound(ranges.begin(), ranges.end(), offset,
                                      [](uint32_t value, const LineRange& range) { return value < range.end; });
  return found == ranges.end() || found->line < 0 ? first_line : found->line;
}

}  // namespace firelane::live
