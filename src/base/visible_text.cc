#include "base/visible_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/utf8.h"

namespace firelane {

namespace {

struct Range {
  uint32_t first, last;
};

// Sorted by first. Ranges of Unicode 15 that terminals draw two columns wide, coarse on purpose.
constexpr std::array kWide = {
    Range{0x1100, 0x115F},   Range{0x2E80, 0x303E},   Range{0x3041, 0xA4CF},   Range{0xA960, 0xA97C},
    Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},
    Range{0xFFE0, 0xFFE6},   Range{0x1F300, 0x1F64F}, Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1F9FF},
    Range{0x20000, 0x3FFFD},
};
constexpr std::array kCombining = {
    Range{0x0300, 0x036F}, Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF},
    Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F}, Range{0xFE20, 0xFE2F},
};
// Invisible or reordering: soft hyphen, zero-width and bidirectional marks, line separators, BOM, tags.
constexpr std::array kInvisible = {
    Range{0x007F, 0x009F}, Range{0x00AD, 0x00AD}, Range{0x061C, 0x061C}, Range{0x200B, 0x200F},
    Range{0x2028, 0x202E}, Range{0x2060, 0x206F}, Range{0xFEFF, 0xFEFF}, Range{0xE0000, 0xE007F},
};

template <size_t N>
bool in_ranges(const std::array<Range, N>& ranges, uint32_t point) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& range) { return point >= range.first && point <= range.last; });
}

// REQUIRES: `length` is what utf8_length() said.
uint32_t decode(std::string_view text, size_t length) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  if (length == 1) return byte(0);
  uint32_t point = byte(0) & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) point = point << 6 | (byte(i) & 0x3F);
  return point;
}

void append_hex(std::string& out, uint32_t number, int digits) {
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) out += "0123456789abcdef"[number >> shift & 0xF];
}

void append_escaped(std::string& out, uint32_t point) {
  switch (point) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (point < 0x100) {
    out += "\\x";
    append_hex(out, point, 2);
  } else if (point < 0x10000) {
    out += "\\u";
    append_hex(out, point, 4);
  } else {
    out += "\\U";
    append_hex(out, point, 8);
  }
}

size_t point_width(uint32_t point) {
  if (point < 0x300) return 1;
  return in_ranges(kCombining, point) ? 0 : in_ranges(kWide, point) ? 2 : 1;
}

}  // namespace

std::string visible_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) {
      out += "\\x";
      append_hex(out, static_cast<unsigned char>(text[0]), 2);
      text.remove_prefix(1);
      continue;
    }
    const uint32_t point = decode(text, length);
    if (point < 0x20 || (point >= 0x7F && in_ranges(kInvisible, point))) {
      append_escaped(out, point);
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return out;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const size_t length = std::max<size_t>(utf8_length(text), 1);
    width += point_width(decode(text, length));
    text.remove_prefix(length);
  }
  return width;
}

std::string shorten_middle(std::string_view text, size_t width) {
  if (display_width(text) <= width) return std::string(text);
  std::vector<std::string_view> characters;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t length = std::max<size_t>(utf8_length(rest), 1);
    characters.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  const auto width_of = [&](size_t i) { return point_width(decode(characters[i], characters[i].size())); };
  const size_t head_width = (width - 1) * 2 / 3;
  const size_t tail_width = width - 1 - head_width;
  std::string out;
  for (size_t i = 0, used = 0; i < characters.size() && used + width_of(i) <= head_width; ++i) {
    used += width_of(i);
    out += characters[i];
  }
  out += "…";
  size_t tail = characters.size();
  for (size_t used = 0; tail > 0 && used + width_of(tail - 1) <= tail_width; --tail) used += width_of(tail - 1);
  for (; tail < characters.size(); ++tail) out += characters[tail];
  return out;
}

}  // namespace firelane
