// Writes JSON into a string, one value at a time; commas and escapes are its business.
//
//   JsonWriter json;
//   json.begin_object().field("name", "aten::mm").field("count", 3).end_object();
//   json.text() == R"({"name":"aten::mm","count":3})"
//
// Text that is not valid UTF-8 is written with U+FFFD in place of each bad byte, so that
// the output always parses. Numbers that JSON does not have (NaN, Infinity) become null.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace firelane {

// Appends `text` with JSON escapes, without the quotes around it.
void append_json_escaped(std::string& out, std::string_view text);

class JsonWriter {
 public:
  // indent 0: compact; else pretty-printed with that many spaces a level.
  explicit JsonWriter(int indent = 0) : indent_(indent) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth);
  JsonWriter& value(double number);
  JsonWriter& value(std::signed_integral auto number) { return integer(static_cast<int64_t>(number)); }
  JsonWriter& value(std::unsigned_integral auto number) { return unsigned_integer(static_cast<uint64_t>(number)); }
  JsonWriter& null();
  // Text that is JSON already. REQUIRES: it is valid.
  JsonWriter& raw(std::string_view json);

  template <typename T>
  JsonWriter& field(std::string_view name, const T& v) {
    key(name);
    return value(v);
  }

  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& integer(int64_t number);
  JsonWriter& unsigned_integer(uint64_t number);
  void before_value();
  void new_line();

  std::string out_;
  std::vector<bool> has_items_;  // one entry per open bracket
  int indent_;
  bool after_key_ = false;
};

}  // namespace firelane
