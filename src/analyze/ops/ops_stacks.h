// The Python stack that an event was called from, as a small id: equal ids, equal first N
// frames. Frames come from the trace's own stack text where it has one, else from the Python
// slices around the event; torch leaves them out in the second case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

class OpsStacks {
 public:
  static constexpr uint32_t kNone = 0;  // no frames

  OpsStacks(const Model& model, uint32_t frames);

  // `backward`: the innermost backward function around the event, or kNoRow. Such events
  // show the stack of the forward op, because that is where the user's code is.
  uint32_t of_host(Row row, Row backward);
  // Device work shows the stack of the call that queued it.
  uint32_t of_device(Row row);

  // Innermost first.
  const std::vector<std::string>& frames(uint32_t stack) const { return stacks_[stack]; }

 private:
  uint32_t of_text(StringId text);
  uint32_t of_slices(Row row);
  uint32_t intern(std::vector<std::string> frames);
  Row python_above(Row row);
  bool is_shown(StringId name);

  static constexpr uint32_t kUnknown = UINT32_MAX;
  const Model& model_;
  uint32_t frames_;
  std::vector<std::vector<std::string>> stacks_;
  std::unordered_map<std::string, uint32_t> id_of_;  // frames joined by line breaks
  std::unordered_map<uint32_t, uint32_t> id_of_text_;
  std::vector<uint8_t> shown_;  // per name: 0 not asked, 1 hidden, 2 shown
  // Python slices: every call is a slice of its own, so what is looked up is the names of the
  // frames, in an open-addressed table.
  struct NamedStack {
    uint64_t hash = 0;
    uint32_t stack = kUnknown;  // free
    uint32_t depth = 0;
    size_t names = 0;  // place in names_
  };
  NamedStack& find_named(uint64_t hash);
  std::vector<NamedStack> named_;
  size_t named_count_ = 0;
  std::vector<StringId> names_;
  std::vector<StringId> wanted_;  // the frames looked up now
};

// Whether the slice is an autograd node's backward (torch's RecordScope BACKWARD_FUNCTION),
// which the trace does not say: such ops know the thread of their forward.
bool is_backward_function(const Model& model, Row row);

}  // namespace firelane::analyze
