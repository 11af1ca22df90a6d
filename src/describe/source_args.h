// Cuts the args out of events that are given as JSON text (ArgSource, model/model.h).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

namespace firelane::describe {

class SourceArgs {
 public:
  SourceArgs();
  ~SourceArgs();
  // The args object with its braces; "" when the event has none; nothing when it is not valid JSON.
  // Valid until the next call.
  std::optional<std::string_view> of(std::string_view event_json);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace firelane::describe
