#include "describe/source_args.h"

#include <simdjson.h>

#include <string>

namespace firelane::describe {

namespace {

// `json` without the white space between its own keys and values. What lies deeper is left as it is: the model
// keeps the texts of shapes, and they are to be the same when read again.
void append_trimmed(std::string& out, std::string_view json) {
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      out += c;
      if (c == '\\' && i + 1 < json.size()) out += json[++i];
      if (c == '"') in_text = false;
      continue;
    }
    const bool is_space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (is_space && depth == 1) continue;
    out += c;
    if (depth == 1 && (c == ',' || c == ':')) out += ' ';
    if (c == '"') in_text = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
  }
}

}  // namespace

struct SourceArgs::State {
  simdjson::ondemand::parser parser;
  simdjson::dom::parser validator;
  std::string event;
  std::string args;
};

SourceArgs::SourceArgs() : state_(std::make_unique<State>()) {}
SourceArgs::~SourceArgs() = default;

std::optional<std::string_view> SourceArgs::of(std::string_view event_json) {
  State& s = *state_;
  s.event.assign(event_json);
  s.event.reserve(s.event.size() + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::document event;
  if (s.parser.iterate(s.event).get(event) != simdjson::SUCCESS) return std::nullopt;
  simdjson::ondemand::object args;
  const auto found = event.find_field_unordered("args").get(args);
  if (found == simdjson::NO_SUCH_FIELD) return std::string_view{};
  std::string_view raw;
  if (found != simdjson::SUCCESS || args.raw_json().get(raw) != simdjson::SUCCESS) return std::nullopt;
  s.args.clear();
  append_trimmed(s.args, raw);
  // The reader is lenient (NaN, cut off values); what we write is to be read by everybody.
  if (s.validator.parse(s.args).error() != simdjson::SUCCESS) return std::nullopt;
  return s.args;
}

}  // namespace firelane::describe
