// Reads events one by one from text that the fast way could not take: each event is
// delimited, mended and parsed on its own; what cannot be saved is counted, and reading goes on
// behind it.
#pragma once

#include <cstdint>
#include <string>

#include "import/byte_source.h"
#include "import/json/event_parser.h"

namespace firelane::importer {

class CarefulReader {
 public:
  CarefulReader(const ByteSource& source, EventParser& parser) : source_(source), parser_(parser) {}

  enum class Stop {
    kBoundary,  // stands at or behind `until`, between two events
    kListEnd,   // stands behind the "]" of the event list
    kEnd,       // the source ended; the list was not closed
  };

  // Reads from `at`, a place between two events, until `until` is reached or passed.
  // `content_end` is where the readable content ends.
  Stop read(uint64_t at, uint64_t until, uint64_t content_end, RawPart& part);

  // Where the last read() stopped.
  uint64_t position() const { return at_; }
  // Whether the source ended inside an event.
  bool torn() const { return torn_; }

 private:
  void load_window(uint64_t from, size_t size, uint64_t content_end);
  bool read_event(uint64_t content_end, RawPart& part);
  void skip_broken(uint64_t content_end);
  void settle(RawPart& part);
  char look(uint64_t content_end);

  const ByteSource& source_;
  EventParser& parser_;
  std::string window_;
  uint64_t window_start_ = 0;
  uint64_t at_ = 0;
  uint64_t broken_ = 0;   // events given up so far: the search for an event's end gets shorter
  uint64_t pending_ = 0;  // given up since the last good one: a tear, if no good one follows
  bool pending_tear_ = false;
  bool torn_ = false;
};

}  // namespace firelane::importer
