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

}  // namespace firelane
