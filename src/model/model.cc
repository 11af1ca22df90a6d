#include "model/model.h"

namespace firelane {

std::string_view name_of(HostKind kind) {
  constexpr std::string_view kNames[] = {"op",     "annotation", "python", "runtime",
                                         "driver", "overhead",   "span",   "other"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name_of(DeviceKind kind) {
  constexpr std::string_view kNames[] = {"kernel", "copy", "set", "sync", "event", "collective", "annotation", "other"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name_of(LaneKind kind) {
  constexpr std::string_view kNames[] = {"thread", "stream", "async", "other"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name_of(MemoryKind kind) {
  constexpr std::string_view kNames[] = {"alloc", "free", "out_of_memory"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name_of(AllocatorEventKind kind) {
  constexpr std::string_view kNames[] = {"free_completed", "segment_alloc", "segment_free", "segment_map",
                                         "segment_unmap"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name_of(AllocatorBlockState state) {
  constexpr std::string_view kNames[] = {"free", "waiting", "allocated"};
  return kNames[static_cast<size_t>(state)];
}

std::string_view name_of(OccupancyLimit limit) {
  constexpr std::string_view kNames[kOccupancyLimitCount] = {"",          "none",          "warps", "blocks",
                                                             "registers", "shared memory", "grid"};
  return kNames[static_cast<size_t>(limit)];
}

std::string Model::id_text(const TraceId& id) const {
  if (id.text != kNoString) return std::string(strings.view(id.text));
  if (id.number == kNoNumber) return "";
  return std::to_string(id.number);
}

const MetadataEntry* Model::find_metadata(std::string_view key) const {
  for (const MetadataEntry& entry : info.metadata) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

}  // namespace firelane
