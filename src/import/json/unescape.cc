#include "import/json/unescape.h"

#include <charconv>
#include <cstdint>

namespace firelane::importer {

namespace {

// The four hex digits at `at`, or -1.
int32_t hex4(std::string_view text, size_t at) {
  if (at + 4 > text.size()) return -1;
  uint32_t value = 0;
  const char* const first = text.data() + at;
  const auto parsed = std::from_chars(first, first + 4, value, 16);
  return parsed.ptr == first + 4 ? static_cast<int32_t>(value) : -1;
}

void append_utf8(std::string& out, uint32_t point) {
  const auto tail = [&](uint32_t shift) { out += static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xC0 | point >> 6);
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xE0 | point >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | point >> 18);
    tail(12), tail(6), tail(0);
  }
}

// Reads \uXXXX (with its low surrogate) at `at`, which points at the backslash. Returns the
// number of characters used, 0 when it is no such escape.
size_t unicode_escape(std::string_view text, size_t at, std::string& out) {
  const int32_t first = hex4(text, at + 2);
  if (first < 0) return 0;
  const bool high = first >= 0xD800 && first < 0xDC00;
  if (high && at + 7 < text.size() && text[at + 6] == '\\' && text[at + 7] == 'u') {
    const int32_t second = hex4(text, at + 8);
    if (second >= 0xDC00 && second < 0xE000) {
      append_utf8(out,
                  0x10000u + (static_cast<uint32_t>(first - 0xD800) << 10) + static_cast<uint32_t>(second - 0xDC00));
      return 12;
    }
  }
  append_utf8(out, first >= 0xD800 && first < 0xE000 ? 0xFFFD : static_cast<uint32_t>(first));
  return 6;
}

}  // namespace

void unescape_json(std::string_view text, std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i++];
      continue;
    }
    size_t used = 2;
    switch (text[i + 1]) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case 'r': out += '\r'; break;
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case '"':
      case '\\':
      case '/': out += text[i + 1]; break;
      case 'u': used = unicode_escape(text, i, out); break;
      default: used = 0;
    }
    if (used == 0) {
      out += text[i];
      used = 1;
    }
    i += used;
  }
}

}  // namespace firelane::importer
