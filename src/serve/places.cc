#include "serve/places.h"

#include <charconv>

namespace firelane::serve {

std::string ref_text(const SliceRef& slice) { return (slice.on_device ? "d" : "h") + std::to_string(slice.row); }

std::optional<SliceRef> parse_ref(const Model& model, std::string_view text) {
  if (!text.starts_with('h') && !text.starts_with('d')) return std::nullopt;
  SliceRef slice{.on_device = text[0] == 'd'};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + 1, end, slice.row);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  const size_t size = slice.on_device ? model.device_slices.size() : model.host_slices.size();
  return slice.row < size ? std::optional(slice) : std::nullopt;
}

void write_found(JsonWriter& json, const Model& model, const Timeline& timeline, const SliceRef& slice) {
  if (slice.row == kNoRow) {
    json.null();
    return;
  }
  json.begin_object()
      .field("ref", ref_text(slice))
      .field("lane", static_cast<uint32_t>(lane_of(model, slice)))
      .field("row", timeline.row_of(slice))
      .field("name", model.text(name_id_of(model, slice)))
      .field("start_ns", start_of(model, slice))
      .field("duration_ns", duration_of(model, slice))
      .end_object();
}

}  // namespace firelane::serve
