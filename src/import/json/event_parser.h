// Turns events of a Chrome trace into rows of a RawPart. One parser per thread: it owns the
// thread's pool of strings and lanes, and remembers what repeats from event to event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "model/raw.h"

namespace firelane::importer {

// Text handed to the parser must be followed by this many readable bytes.
inline constexpr size_t kTextPadding = 128;

class EventParser {
 public:
  EventParser(RawPool& pool, uint32_t pool_index);
  ~EventParser();

  // Parses "{...},{...}": whole events with commas between them. `text[-1]` and `text[size]`
  // are overwritten. `source` is where the text lies in the file. False: the text is not
  // that (broken JSON, or cut in the wrong place), and `part` must be thrown away.
  bool parse_events(char* text, size_t size, uint64_t source, RawPart& part);

  // Parses one event "{...}". False: broken JSON.
  bool parse_event(const char* text, size_t size, uint64_t source, RawPart& part);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace firelane::importer
