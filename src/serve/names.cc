#include "serve/names.h"

#include <algorithm>

#include "base/run_sort.h"
#include "base/wrapping.h"
#include "serve/places.h"
#include "serve/timeline.h"

namespace firelane::serve {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool contains(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

}  // namespace

NameIndex::NameIndex(const Model& model) : begins_(model.strings.size() + 1), totals_(model.strings.size()) {
  const HostSlices& host = model.host_slices;
  const DeviceSlices& device = model.device_slices;
  const auto count = [&](const auto& slices) {
    for (Row row = 0; row < slices.size(); ++row) {
      const auto name = static_cast<size_t>(slices.name[row]);
      ++begins_[name + 1];
      totals_[name] = wrap_add(totals_[name], slices.duration_ns[row]);
    }
  };
  count(host);
  count(device);
  for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  refs_.resize(host.size() + device.size());
  std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
  for (Row row = 0; row < host.size(); ++row) refs_[next[static_cast<size_t>(host.name[row])]++] = row;
  for (Row row = 0; row < device.size(); ++row) {
    refs_[next[static_cast<size_t>(device.name[row])]++] = row | kDeviceBit;
  }
  const auto earlier = [&](uint32_t a, uint32_t b) {
    return start_of(model, slice_of(a)) < start_of(model, slice_of(b));
  };
  for (size_t i = 0; i + 1 < begins_.size(); ++i) {
    run_sort(refs_.data() + begins_[i], begins_[i + 1] - begins_[i], earlier);
  }
}

std::vector<StringId> NameIndex::find(const Model& model, std::string_view text, bool exact) const {
  std::vector<StringId> found;
  for (uint32_t id = 0; id + 1 < begins_.size(); ++id) {
    if (begins_[id] == begins_[id + 1]) continue;
    const std::string_view name = model.strings.view(StringId{id});
    if (exact ? name == text : contains(name, text)) found.push_back(StringId{id});
  }
  return found;
}

}  // namespace firelane::serve
