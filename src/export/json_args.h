// Args from the model's columns, as JSON: a receiver of describe::visit_host_args() and its siblings.
#pragma once

#include <string>
#include <string_view>

#include "export/json_pairs.h"
#include "model/model.h"

namespace firelane::exporter {

// A JSON object with "None" for each text that has a quotation mark, as torch.profiler writes what a program gave.
// Texts in lists are kept, as there.
inline std::string plain_object(std::string_view object) {
  std::string out;
  int depth = 0;
  bool is_value = false;
  for (size_t at = 0; at < object.size();) {
    const char c = object[at];
    if (c != '"') {
      depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      if (depth == 1 && (c == ':' || c == ',')) is_value = c == ':';
      out += c;
      ++at;
      continue;
    }
    size_t end = at + 1;
    bool is_quoted = false;
    for (; end < object.size() && object[end] != '"'; end += object[end] == '\\' ? 2 : 1)
      is_quoted = is_quoted || object.substr(end, 2) == "\\\"";
    const std::string_view text = object.substr(at, end + 1 - at);
    out += depth == 1 && is_value && is_quoted ? "\"None\"" : text;
    at += text.size();
  }
  return out;
}

enum class ObjectTexts : uint8_t { kAsTheyAre, kPlain };

class JsonArgs {
 public:
  JsonArgs(const Model& model, std::string& out, ObjectTexts texts = ObjectTexts::kAsTheyAre)
      : model_(model), pairs_(out), texts_(texts) {}
  void number(std::string_view key, int64_t value) { pairs_.number(key, value); }
  void real(std::string_view key, float value) { pairs_.real(key, value); }
  void triple(std::string_view key, int32_t x, int32_t y, int32_t z) {
    pairs_.json(key, "[" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + "]");
  }
  void text(std::string_view key, StringId value) { pairs_.text(key, model_.text(value)); }
  void word(std::string_view key, std::string_view value) { pairs_.text(key, value); }
  void json(std::string_view key, StringId value) { pairs_.json(key, model_.text(value)); }
  void object(StringId value) {
    const std::string_view text = model_.text(value);
    const bool is_plain = texts_ == ObjectTexts::kAsTheyAre || text.find("\\\"") == std::string_view::npos;
    pairs_.object(is_plain ? text : std::string_view(plain_object(text)));
  }

 private:
  const Model& model_;
  JsonPairs pairs_;
  ObjectTexts texts_;
};

}  // namespace firelane::exporter
