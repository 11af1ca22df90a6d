#include "import/dumps/document_json.h"

#include <cmath>

#include "base/json_writer.h"

namespace firelane::importer {

namespace {

constexpr int kMostShownDepth = 16;

void append_json(const Document& document, Value value, int depth, size_t most_bytes, std::string& out) {
  const auto append_text = [&](std::string_view text) {
    out += '"';
    append_json_escaped(out, text);
    out += '"';
  };
  const bool fits = depth < kMostShownDepth && out.size() < most_bytes;
  const char* separator = "";
  switch (document.type(value)) {
    case ValueType::kTruth: out += document.truth(value).value_or(false) ? "true" : "false"; return;
    case ValueType::kInteger: {
      const std::optional<int64_t> number = document.integer(value);
      out += number ? std::to_string(*number) : "null";
      return;
    }
    case ValueType::kReal: {
      const double number = document.real(value).value_or(0);
      out += std::isfinite(number) ? std::to_string(number) : "null";
      return;
    }
    case ValueType::kText:
      if (out.size() + document.text(value).size() < most_bytes) return append_text(document.text(value));
      break;
    case ValueType::kList:
    case ValueType::kTuple:
      if (!fits) break;
      out += '[';
      document.each(value, [&](Value item) {
        out += std::exchange(separator, ", ");
        append_json(document, item, depth + 1, most_bytes, out);
        return out.size() < most_bytes;
      });
      out += ']';
      return;
    case ValueType::kDict:
      if (!fits) break;
      out += '{';
      document.each_pair(value, [&](Value key, Value item) {
        out += std::exchange(separator, ", ");
        const std::optional<int64_t> number = document.integer(key);
        append_text(number ? std::to_string(*number) : std::string(document.text(key)));
        out += ": ";
        append_json(document, item, depth + 1, most_bytes, out);
        return out.size() < most_bytes;
      });
      out += '}';
      return;
    case ValueType::kNone: break;
  }
  out += "null";
}

}  // namespace

std::string document_json(const Document& document, Value value, size_t most_bytes) {
  std::string out;
  append_json(document, value, 0, most_bytes, out);
  return out;
}

}  // namespace firelane::importer
