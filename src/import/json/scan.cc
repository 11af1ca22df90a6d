#include "import/json/scan.h"

#include <cstring>

#include "base/utf8.h"

namespace firelane::importer {

namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// The place after the string that opens at `at`; kNotFound when it does not close.
size_t string_end(std::string_view text, size_t at) {
  size_t i = at + 1;
  for (;;) {
    const void* quote = i < text.size() ? std::memchr(text.data() + i, '"', text.size() - i) : nullptr;
    if (quote == nullptr) return kNotFound;
    const auto end = static_cast<size_t>(static_cast<const char*>(quote) - text.data());
    size_t slashes = 0;
    while (end - slashes > i && text[end - slashes - 1] == '\\') ++slashes;
    if (slashes % 2 == 0) return end + 1;
    i = end + 1;
  }
}

// If text[brace] is "{" after "} ,": the place of that comma, else kNotFound.
size_t comma_before(std::string_view text, size_t brace) {
  size_t i = brace;
  while (i > 0 && is_space(text[i - 1])) --i;
  if (i == 0 || text[i - 1] != ',') return kNotFound;
  const size_t comma = i - 1;
  i = comma;
  while (i > 0 && is_space(text[i - 1])) --i;
  return i > 0 && text[i - 1] == '}' ? comma : kNotFound;
}

// Overwrites a string's bad characters; returns the place after its closing quote, or size.
size_t repair_string(char* text, size_t size, size_t at, Repairs& repairs) {
  size_t i = at + 1;
  while (i < size) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"') return i + 1;
    if (c == '\\') {
      i += 2;
    } else if (c < 0x20) {
      text[i++] = ' ';
      ++repairs.characters;
    } else if (c < 0x80) {
      ++i;
    } else {
      const size_t length = utf8_length({text + i, size - i});
      if (length == 0) {
        text[i] = '?';
        ++repairs.characters;
      }
      i += length == 0 ? 1 : length;
    }
  }
  return size;
}

// Length of NaN, Infinity or -Infinity at `at`, or 0.
size_t odd_number(std::string_view text) {
  for (const std::string_view word : {"NaN", "-NaN", "Infinity", "-Infinity"}) {
    if (text.starts_with(word)) return word.size();
  }
  return 0;
}

}  // namespace

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

size_t value_end(std::string_view text, size_t at) {
  if (at >= text.size()) return kNotFound;
  if (text[at] == '"') return string_end(text, at);
  size_t depth = 0;
  for (size_t i = at; i < text.size();) {
    switch (text[i]) {
      case '"':
        i = string_end(text, i);
        if (i == kNotFound) return kNotFound;
        continue;
      case '{':
      case '[': ++depth; break;
      case '}':
      case ']':
        if (depth == 0) return i;  // a scalar, closed by what surrounds it
        if (--depth == 0) return i + 1;
        break;
      case ',':
        if (depth == 0) return i;
        break;
      default: break;
    }
    ++i;
  }
  return kNotFound;
}

size_t last_event_comma(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const void* brace = ::memrchr(text.data(), '{', end);
    if (brace == nullptr) return kNotFound;
    end = static_cast<size_t>(static_cast<const char*>(brace) - text.data());
    const size_t comma = comma_before(text, end);
    if (comma != kNotFound) return comma;
  }
  return kNotFound;
}

size_t next_event_start(std::string_view text, size_t from) {
  for (size_t brace = text.find('{', from); brace != std::string_view::npos; brace = text.find('{', brace + 1)) {
    size_t i = brace;
    while (i > from && is_space(text[i - 1])) --i;
    if (i > 0 && text[i - 1] == ',') return brace;
  }
  return kNotFound;
}

Repairs repair_text(char* text, size_t size) {
  Repairs repairs;
  for (size_t i = 0; i < size;) {
    const char c = text[i];
    if (c == '"') {
      i = repair_string(text, size, i, repairs);
      continue;
    }
    if (c == 'N' || c == 'I' || c == '-') {
      const size_t length = odd_number({text + i, size - i});
      if (length > 0) {
        std::memset(text + i, ' ', length);
        text[i] = text[i + 1] = '"';
        ++repairs.numbers;
        i += length;
        continue;
      }
    } else if (static_cast<unsigned char>(c) < 0x20 && !is_space(c)) {
      text[i] = ' ';  // a stray control character between tokens
      ++repairs.characters;
    }
    ++i;
  }
  return repairs;
}

}  // namespace firelane::importer
