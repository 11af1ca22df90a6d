// Cuts the events of a trace into chunks that can be parsed independently.
//
// A chunk ends at a comma that looks like one between two events. The guess can be wrong
// (such a comma inside a string or a nested list); then the chunk does not parse, and the
// reader goes over that place again, slowly and surely (careful_reader.h). So a wrong guess costs time,
// never data.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "import/byte_source.h"
#include "import/json/event_parser.h"

namespace firelane::importer {

// A text buffer with one byte before and kTextPadding bytes behind it.
class ChunkBuffer {
 public:
  char* text() { return bytes_.data() + 1; }
  size_t size = 0;
  uint64_t source = 0;  // where text()[0] lies in the content
  size_t index = 0;     // chunks are numbered in file order

  void reserve(size_t text_bytes) {
    if (bytes_.size() < text_bytes + 1 + kTextPadding) bytes_.resize(text_bytes + 1 + kTextPadding);
  }
  size_t capacity() const { return bytes_.empty() ? 0 : bytes_.size() - 1 - kTextPadding; }

 private:
  std::vector<char> bytes_;
};

class ChunkFeeder {
 public:
  // `carry` is text already read from the source (what follows the "[" of the events),
  // `carry_source` its place.
  ChunkFeeder(ByteSource& source, std::string carry, uint64_t carry_source, size_t chunk_bytes);

  // Fills `chunk` with the next chunk of events; false at the end. Thread-safe: whichever
  // thread is free reads (or inflates) the next piece while the others parse.
  bool next(ChunkBuffer& chunk);

  // After the end: the text behind the last comma, which holds the last event and
  // whatever follows the list, and its place. Its size is below `kMaxEventBytes`.
  const std::string& rest() const { return carry_; }
  uint64_t rest_source() const { return carry_source_; }
  // The end of what was read.
  uint64_t end() const { return carry_source_ + carry_.size(); }

  static constexpr size_t kMaxEventBytes = size_t{256} << 20;

 private:
  std::mutex mutex_;
  ByteSource& source_;
  std::string carry_;
  uint64_t carry_source_;
  size_t chunk_bytes_;
  size_t next_index_ = 0;
  bool ended_ = false;
};

}  // namespace firelane::importer
