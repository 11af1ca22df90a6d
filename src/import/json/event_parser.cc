#include "import/json/event_parser.h"

#include <simdjson.h>

#include <cstring>

#include "import/json/event_rows.h"

namespace firelane::importer {

namespace ondemand = simdjson::ondemand;

namespace {

// True when the key at `key` (just after its opening quote) is exactly `name`. Reads no further
// than the name and a quote; the padding behind the text makes that safe.
template <size_t N>
bool is_key(const char* key, const char (&name)[N]) {
  return std::memcmp(key, name, N - 1) == 0 && key[N - 1] == '"';
}

// A token's text without the white space behind it.
std::string_view token_of(ondemand::value& value) {
  std::string_view token = value.raw_json_token();
  while (!token.empty() &&
         (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' || token.back() == '\t')) {
    token.remove_suffix(1);
  }
  return token;
}

// The JSON text of a value of any kind.
simdjson::error_code string_of(ondemand::value& value, std::string_view& text) {
  const std::string_view token = token_of(value);
  if (token.empty()) return simdjson::TAPE_ERROR;
  if (token.front() == '[') {
    ondemand::array array;
    if (const auto error = value.get_array().get(array)) return error;
    return array.raw_json().get(text);
  }
  if (token.front() == '{') {
    ondemand::object object;
    if (const auto error = value.get_object().get(object)) return error;
    return object.raw_json().get(text);
  }
  text = token;
  return simdjson::SUCCESS;
}

// Whether everything was read: text behind the first value means a wrong cut.
bool at_end(ondemand::document& document) {
  const char* location = nullptr;
  return document.current_location().get(location) == simdjson::OUT_OF_BOUNDS;
}

}  // namespace

class EventParser::Impl {
 public:
  Impl(RawPool& pool, uint32_t pool_index) : rows_(pool), pool_index_(pool_index) {}

  bool parse_events(char* text, size_t size, uint64_t source, RawPart& part) {
    text[-1] = '[';
    text[size] = ']';
    part.pool = pool_index_;
    rows_.begin_part(part, size);
    ondemand::document document;
    if (parser_.iterate(text - 1, size + 2, size + 2 + kTextPadding - 1).get(document)) return false;
    ondemand::array events;
    if (document.get_array().get(events)) return false;
    for (auto element : events) {
      ondemand::value value;
      if (element.get(value)) return false;
      const char* const at = value.raw_json_token().data();
      ondemand::object object;
      if (value.get_object().get(object)) return false;
      if (!visit_event(object, source + static_cast<uint64_t>(at - text))) return false;
    }
    return at_end(document);
  }

  bool parse_event(const char* text, size_t size, uint64_t source, RawPart& part) {
    part.pool = pool_index_;
    rows_.begin_part(part, 0);
    ondemand::document document;
    if (parser_.iterate(text, size, size + kTextPadding).get(document)) return false;
    ondemand::object object;
    if (document.get_object().get(object)) return false;
    return visit_event(object, source) && at_end(document);
  }

 private:
  bool visit_event(ondemand::object& object, uint64_t source) {
    event_.clear();
    for (auto element : object) {
      ondemand::field field;
      if (std::move(element).get(field)) return false;
      const char* const key = field.key().raw();
      ondemand::value value = field.value();
      switch (key[0]) {
        case 'p':
          if (is_key(key, "ph")) event_.phase = token_of(value);
          if (is_key(key, "pid")) event_.pid = token_of(value);
          break;
        case 't':
          if (is_key(key, "ts")) event_.ts = token_of(value);
          if (is_key(key, "tid")) event_.tid = token_of(value);
          break;
        case 'd':
          if (is_key(key, "dur")) event_.dur = token_of(value);
          break;
        case 'n':
          if (is_key(key, "name")) event_.name = token_of(value);
          break;
        case 'c':
          if (is_key(key, "cat")) event_.category = token_of(value);
          break;
        case 'b':
          if (is_key(key, "bp")) event_.bind_enclosing = token_of(value) == "\"e\"";
          break;
        case 's':
          if (is_key(key, "s")) event_.instant_scope = token_of(value);
          if (is_key(key, "scope")) event_.scope = token_of(value);
          break;
        case 'i':
          if (is_key(key, "id") && string_of(value, event_.id)) return false;
          if (is_key(key, "id2") && string_of(value, event_.id)) return false;
          break;
        case 'a':
          if (is_key(key, "args") && !visit_args(value)) return false;
          break;
        default: break;
      }
    }
    rows_.add(event_, source);
    return true;
  }

  bool visit_args(ondemand::value& value) {
    const std::string_view token = value.raw_json_token();
    if (token.empty() || token.front() != '{') return true;  // null, or something odd: no args
    ondemand::object object;
    if (value.get_object().get(object)) return false;
    const bool counter = event_.phase == "\"C\"";
    for (auto element : object) {
      ondemand::field field;
      if (std::move(element).get(field)) return false;
      const char* const key = field.key().raw();
      ondemand::value arg = field.value();
      if (counter) {
        const char* const end = std::strchr(key, '"');
        if (end != nullptr) event_.series.push_back({{key, static_cast<size_t>(end - key)}, token_of(arg)});
        continue;
      }
      const ArgId id = arg_id(key);
      if (id == ArgId::kUnknown) continue;
      if (string_of(arg, event_.args[static_cast<size_t>(id)])) return false;
      event_.seen_args[event_.seen_count++ & (kArgCount - 1)] = id;
    }
    return true;
  }

  ondemand::parser parser_;
  RawEvent event_;
  EventRows rows_;
  uint32_t pool_index_;
};

EventParser::EventParser(RawPool& pool, uint32_t pool_index) : impl_(std::make_unique<Impl>(pool, pool_index)) {}
EventParser::~EventParser() = default;

bool EventParser::parse_events(char* text, size_t size, uint64_t source, RawPart& part) {
  return impl_->parse_events(text, size, source, part);
}

bool EventParser::parse_event(const char* text, size_t size, uint64_t source, RawPart& part) {
  return impl_->parse_event(text, size, source, part);
}

}  // namespace firelane::importer
