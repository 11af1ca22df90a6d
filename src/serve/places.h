// One slice, whichever table it is in, and how the viewer is told where it lies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "model/model.h"
#include "serve/timeline.h"

namespace firelane::serve {

inline int64_t start_of(const Model& model, const SliceRef& slice) {
  return slice.on_device ? model.device_slices.start_ns[slice.row] : model.host_slices.start_ns[slice.row];
}
inline int64_t duration_of(const Model& model, const SliceRef& slice) {
  return slice.on_device ? model.device_slices.duration_ns[slice.row] : model.host_slices.duration_ns[slice.row];
}
inline StringId name_id_of(const Model& model, const SliceRef& slice) {
  return slice.on_device ? model.device_slices.name[slice.row] : model.host_slices.name[slice.row];
}
inline LaneId lane_of(const Model& model, const SliceRef& slice) {
  return slice.on_device ? model.device_slices.lane[slice.row] : model.host_slices.lane[slice.row];
}

// "h12", "d7".
std::string ref_text(const SliceRef& slice);
// Nothing when it is not one, or not of this trace.
std::optional<SliceRef> parse_ref(const Model& model, std::string_view text);

// {"ref", "lane", "row", "name", "start_ns", "duration_ns"}; null for no slice.
void write_found(JsonWriter& json, const Model& model, const Timeline& timeline, const SliceRef& slice);

}  // namespace firelane::serve
