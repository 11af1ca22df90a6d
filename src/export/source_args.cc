#include "export/source_args.h"

#include <simdjson.h>

#include <string>
#include <vector>

namespace firelane {

struct SourceArgs::State {
  simdjson::ondemand::parser parser;
  std::string padded;
  std::vector<char> minified;
};

SourceArgs::SourceArgs() : state_(std::make_unique<State>()) {}
SourceArgs::~SourceArgs() = default;

std::string_view SourceArgs::of(std::string_view event_json) {
  State& s = *state_;
  s.padded.assign(event_json);
  s.padded.reserve(s.padded.size() + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::document event;
  if (s.parser.iterate(s.padded).get(event) != simdjson::SUCCESS) return {};
  simdjson::ondemand::object args;
  std::string_view raw;
  if (event.find_field_unordered("args").get(args) != simdjson::SUCCESS) return {};
  if (args.raw_json().get(raw) != simdjson::SUCCESS) return {};
  if (s.minified.size() < raw.size()) s.minified.resize(raw.size());
  size_t length = 0;
  if (simdjson::minify(raw.data(), raw.size(), s.minified.data(), length) != simdjson::SUCCESS) return {};
  return {s.minified.data(), length};
}

}  // namespace firelane
