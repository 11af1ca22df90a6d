// Appends "key": value pairs of one JSON object to a string; absent values are left out.
// Faster than JsonWriter where millions of small objects go into one buffer.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "model/model.h"

namespace firelane::exporter {

template <typename Number>
void append_number(std::string& out, Number number) {
  char digits[40];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

inline void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  append_json_escaped(out, text);
  out += '"';
}

class JsonPairs {
 public:
  explicit JsonPairs(std::string& out) : out_(out), begin_(out.size()) {}

  bool empty() const { return out_.size() == begin_; }
  void number(std::string_view key, int64_t value) {
    if (value != kNoNumber) append_number(pair(key), value);
  }
  void real(std::string_view key, float value) {
    if (std::isfinite(value)) append_number(pair(key), value);
  }
  void text(std::string_view key, std::string_view value) {
    if (!value.empty()) append_json_text(pair(key), value);
  }
  // A value that is JSON already.
  void json(std::string_view key, std::string_view value) {
    if (!value.empty()) pair(key) += value;
  }
  // The fields of a JSON object.
  void object(std::string_view value) {
    if (value.size() <= 2) return;
    if (!empty()) out_ += ", ";
    out_ += value.substr(1, value.size() - 2);
  }

 private:
  std::string& pair(std::string_view key) {
    if (!empty()) out_ += ", ";
    append_json_text(out_, key);
    out_ += ": ";
    return out_;
  }

  std::string& out_;
  size_t begin_;
};

}  // namespace firelane::exporter
