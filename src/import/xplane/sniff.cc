// Whether a file is an XPlane one: protobuf has no magic number, but a plane has a form.
#include <algorithm>

#include "import/xplane/read_xplane.h"
#include "import/xplane/wire.h"

namespace firelane::importer {

namespace {

using namespace xplane;  // NOLINT(google-build-using-namespace): the words of this file

// Whether `bytes` could be the beginning of a plane: known fields of the right types, id or name first.
bool looks_like_plane(std::string_view bytes, size_t whole_size) {
  try {
    Message fields = message(bytes);
    bool is_first = true;
    while (fields.next()) {
      const bool is_number = fields.tag() == kPlaneId;
      const bool is_known = fields.tag() >= kPlaneId && fields.tag() <= kPlaneStats;
      const auto right = is_number ? protozero::pbf_wire_type::varint : protozero::pbf_wire_type::length_delimited;
      if (!is_known || fields.wire_type() != right) return false;
      if (is_first && fields.tag() > kPlaneLines) return false;
      is_first = false;
      if (fields.tag() == kPlaneName) {
        const std::string_view name = text_of(fields);
        return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c < 127; });
      }
      fields.skip();
    }
    return bytes.size() == whole_size;
  } catch (const protozero::exception&) {
    return false;
  }
}

}  // namespace

bool is_xplane(std::string_view begin) {
  if (begin.size() < 4 || begin[0] != '\x0A') return false;
  const char* at = begin.data() + 1;
  const char* const end = begin.data() + begin.size();
  uint64_t size = 0;
  try {
    size = protozero::decode_varint(&at, end);
  } catch (const protozero::exception&) {
    return false;
  }
  const std::string_view rest(at, static_cast<size_t>(end - at));
  return size > 0 && looks_like_plane(rest.substr(0, std::min<uint64_t>(size, rest.size())), size);
}

}  // namespace firelane::importer
