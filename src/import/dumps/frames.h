// Call stacks of memory snapshots and flight recorders: lists of {name, filename, line}, innermost first.
//
// With C++ frames a stack has some hundred entries of which few say something to a user. Kept are Python's frames, what
// autograd ran, and the operator that Python called.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "import/pickle/document.h"

namespace firelane::importer {

struct StackText {
  StringId stack = kNoString;  // "train.py(41): step;train.py(60): <module>", in the pool that was given
  StringId op = kNoString;     // "aten::linear": the outermost one, where C++ frames tell
  StringId place = kNoString;  // the innermost frame of code that is no library's: "train.py(41): step"
};

class Frames {
 public:
  Frames(const Document& document, StringPool& strings);

  // For a list of frames; empty for anything else.
  StackText stack_of(Value frames);

 private:
  struct Known {
    Value frames;
    uint32_t text;  // place in texts_
  };
  bool is_same(Value a, Value b) const;
  uint64_t hash_of(Value frames) const;
  uint32_t find(Value frames);
  uint32_t make(Value frames);

  const Document& document_;
  StringPool& strings_;
  Field name_, filename_, line_;
  std::vector<StackText> texts_;
  std::vector<uint32_t> text_of_list_;                           // by container: place in texts_, plus one
  std::unordered_map<uint64_t, std::vector<Known>> by_content_;  // by hash of the frames: lists are often copies
  // By where the frames lie: most copies share them.
  struct Place {
    const char* frames = nullptr;
    size_t bytes = 0;
    uint32_t text = 0;
  };
  std::vector<Place> by_place_;
};

}  // namespace firelane::importer
