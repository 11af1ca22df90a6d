// Notes of the recorder (metadata of a trace) that advice depends on: {} or "" when the trace has none of that name, or
// it is something else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::advise {

inline std::optional<double> noted_number(const Model& model, std::string_view key) {
  const MetadataEntry* entry = model.find_metadata(key);
  return entry == nullptr ? std::nullopt : entry->number;
}

inline std::string noted_text(const Model& model, std::string_view key) {
  const MetadataEntry* entry = model.find_metadata(key);
  return entry == nullptr ? "" : entry->text;
}

inline std::vector<double> noted_numbers(const Model& model, std::string_view key) {
  const MetadataEntry* entry = model.find_metadata(key);
  return entry == nullptr ? std::vector<double>{} : entry->numbers;
}

}  // namespace firelane::advise
