// Fields of the messages of xplane.proto, and walking them: one place for numbers, and for bytes that are no protobuf.
#pragma once

#include <cstdint>
#include <protozero/exception.hpp>
#include <string_view>

#include "import/protobuf_fields.h"
#include "model/stats.h"

namespace firelane::importer::xplane {

inline constexpr uint32_t kSpacePlanes = 1, kSpaceErrors = 2, kSpaceWarnings = 3, kSpaceHosts = 4;
inline constexpr uint32_t kPlaneId = 1, kPlaneName = 2, kPlaneLines = 3, kPlaneEvents = 4, kPlaneStatNames = 5,
                          kPlaneStats = 6;
inline constexpr uint32_t kLineId = 1, kLineName = 2, kLineStart = 3, kLineEvents = 4, kLineShownName = 11;
inline constexpr uint32_t kEventName = 1, kEventOffset = 2, kEventDuration = 3, kEventStats = 4, kEventCount = 5;
inline constexpr uint32_t kStatName = 1, kStatDouble = 2, kStatUint = 3, kStatInt = 4, kStatText = 5, kStatRef = 7;
inline constexpr uint32_t kMetaId = 1, kMetaName = 2, kMetaShownName = 4, kMetaStats = 5;
inline constexpr uint32_t kMapKey = 1, kMapValue = 2;

inline Message message(std::string_view bytes) { return Message(bytes.data(), bytes.size()); }

// Calls visit(field) for each field, in order; visit must take or skip it. False, and counted, when the bytes are no
// message from some place on: what came before was visited.
template <typename Visit>
bool each_field(std::string_view bytes, LossCounts& losses, const Visit& visit) {
  try {
    Message fields = message(bytes);
    while (fields.next()) visit(fields);
    return true;
  } catch (const protozero::exception&) {
    ++losses[Stat::kMessageMalformed];
    return false;
  }
}

// A number of whichever integer type the field was written with; other types are skipped.
inline int64_t integer(Message& field, int64_t otherwise = 0) {
  if (field.wire_type() == protozero::pbf_wire_type::varint) return field.get_int64();
  field.skip();
  return otherwise;
}

// Reads a message that is written as most are, several times as fast: fields whose tag is below 16, with numbers or
// bytes. Whatever else comes ends it, and is_complete() says that the message has to be read again with each_field().
class QuickFields {
 public:
  explicit QuickFields(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  // Tag and type of the next field, as they are written; 0 at the end.
  uint32_t key() {
    if (at_ == end_) return 0;
    const auto byte = static_cast<uint8_t>(*at_++);
    if (byte < 8 || byte > 127) return fail();
    return byte;
  }
  int64_t number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= (uint64_t{byte} & 127) << shift;
      if (byte < 128) return static_cast<int64_t>(value);
    }
    return fail();
  }
  std::string_view bytes() {
    const auto size = static_cast<uint64_t>(number());
    if (size > static_cast<uint64_t>(end_ - at_)) {
      fail();
      return {};
    }
    const std::string_view out(at_, static_cast<size_t>(size));
    at_ += size;
    return out;
  }
  uint32_t fail() {
    at_ = end_;
    is_complete_ = false;
    return 0;
  }
  bool is_complete() const { return is_complete_; }

 private:
  const char* at_;
  const char* end_;
  bool is_complete_ = true;
};

}  // namespace firelane::importer::xplane
