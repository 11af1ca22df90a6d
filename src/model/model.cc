#include "model/model.h"

namespace firelane {

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

CopyKinds Model::copy_kinds(Row device_row) const {
  const DeviceKind kind = device_slices.kind[device_row];
  const Row detail = device_slices.detail[device_row];
  if ((kind != DeviceKind::kCopy && kind != DeviceKind::kSet) || detail == kNoRow) return {};
  return {copy_details.direction[detail], copy_details.source_memory[detail], copy_details.target_memory[detail]};
}

}  // namespace firelane
