// The outermost message of an XPlane file, field by field from its source: only the plane that is being read is in
// memory, not the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "import/byte_source.h"
#include "import/reader.h"

namespace firelane::importer::xplane {

class SpaceFields {
 public:
  SpaceFields(ByteSource& source, const ReadRequest& request) : source_(source), request_(request) {}

  // The next field that has bytes; others are passed over. False at the end, and where the bytes are no message any
  // more, which is counted: a field that the file ends in is not given.
  bool next(LossCounts& losses);
  uint32_t tag() const { return tag_; }
  std::string_view bytes() const { return bytes_; }
  // The same, to keep; until the next field there are none then.
  std::string take() { return std::exchange(bytes_, {}); }

  uint64_t read_bytes() const { return read_bytes_; }
  // What makes the whole file useless; empty = nothing.
  std::string fatal() const;

 private:
  bool take(char* out, size_t size);
  bool varint(uint64_t& number);
  bool pass(uint64_t size);
  bool take_bytes(uint64_t size);

  ByteSource& source_;
  const ReadRequest& request_;
  std::string buffer_;
  size_t at_ = 0;  // in buffer_
  uint32_t tag_ = 0;
  std::string bytes_;
  uint64_t read_bytes_ = 0;
  bool is_too_long_ = false;
};

}  // namespace firelane::importer::xplane
