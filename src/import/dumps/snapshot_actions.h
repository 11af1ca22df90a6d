// What the events of a memory snapshot's history are called.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "import/pickle/document.h"

namespace firelane::importer {

enum class Action : uint8_t {
  kOther,
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOutOfMemory,
};

inline Action action_named(std::string_view name) {
  constexpr std::pair<std::string_view, Action> kActions[] = {
      {"alloc", Action::kAlloc},
      {"free_requested", Action::kFreeRequested},
      {"free_completed", Action::kFreeCompleted},
      {"free", Action::kFreeRequested},  // torch before 2.1
      {"segment_alloc", Action::kSegmentAlloc},
      {"segment_free", Action::kSegmentFree},
      {"segment_map", Action::kSegmentMap},
      {"segment_unmap", Action::kSegmentUnmap},
      {"oom", Action::kOutOfMemory},
  };
  for (const auto& [word, action] : kActions) {
    if (name == word) return action;
  }
  return Action::kOther;
}

// The same few texts again and again: each is looked at once.
class Actions {
 public:
  explicit Actions(const Document& document) : document_(document) {}

  Action of(Value text) {
    for (const auto& [known, action] : known_) {
      if (known == text) return action;
    }
    const Action action = action_named(document_.text(text));
    constexpr size_t kMostKnown = 16;  // a history may have any texts
    if (known_.size() < kMostKnown) known_.emplace_back(text, action);
    return action;
  }

 private:
  const Document& document_;
  std::vector<std::pair<Value, Action>> known_;
};

}  // namespace firelane::importer
