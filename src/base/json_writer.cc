#include "base/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace firelane {

namespace {

// Bytes that can be copied as they are: printable ASCII but quote and backslash.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t c = 0x20; c < 0x7F; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

void append_escape(std::string& out, unsigned char c) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default:
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
  }
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    size_t run = i;
    while (run < text.size() && kPlain[static_cast<unsigned char>(text[run])]) ++run;
    out.append(text, i, run - i);
    i = run;
    if (i == text.size()) return;
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      append_escape(out, c);
      ++i;
      continue;
    }
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      ++i;
    } else {
      out.append(text, i, length);
      i += length;
    }
  }
}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_ += '\n';
  out_.append(has_items_.size() * static_cast<size_t>(indent_), ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) out_ += ',';
  has_items_.back() = true;
  new_line();
}

JsonWriter& JsonWriter::open(char bracket) {
  before_value();
  out_ += bracket;
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) new_line();
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  out_ += '"';
  append_json_escaped(out_, name);
  out_ += indent_ == 0 ? "\":" : "\": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  out_ += '"';
  append_json_escaped(out_, text);
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::value(bool truth) {
  before_value();
  out_ += truth ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  before_value();
  char digits[32];
  // A whole number of more than 64 bits, written out, is one that many readers refuse.
  const bool is_huge = std::abs(number) >= 9.2e18;
  const auto end = is_huge ? std::to_chars(digits, digits + sizeof(digits), number, std::chars_format::scientific).ptr
                           : std::to_chars(digits, digits + sizeof(digits), number).ptr;
  out_.append(digits, end);
  return *this;
}

JsonWriter& JsonWriter::integer(int64_t number) {
  before_value();
  char digits[24];
  out_.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
  return *this;
}

JsonWriter& JsonWriter::unsigned_integer(uint64_t number) {
  before_value();
  char digits[24];
  out_.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
  return *this;
}

JsonWriter& JsonWriter::null() {
  before_value();
  out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
  return *this;
}

}  // namespace firelane
