// What the viewer gets for a request, before it becomes HTTP, a place in a file, or Python.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/json_writer.h"

namespace firelane::serve {

inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kBinaryType = "application/octet-stream";

struct Answer {
  int status = 200;  // of HTTP
  std::string_view type = kJsonType;
  std::string body;
  bool ok() const { return status == 200; }
};

inline Answer json_answer(JsonWriter&& json) { return {.body = json.take()}; }

// {"error": message}. The message is one line and says what to do.
inline Answer refusal(int status, std::string_view message) {
  JsonWriter json;
  json.begin_object().field("error", message).end_object();
  return {.status = status, .body = json.take()};
}

}  // namespace firelane::serve
