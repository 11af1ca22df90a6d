// All slices by their name, in order of time: for search, "the next one like this", and statistics of a name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::serve {

class NameIndex {
 public:
  explicit NameIndex(const Model& model);

  // Refs of the slices of that name, by start.
  std::span<const uint32_t> slices(StringId name) const {
    const auto id = static_cast<size_t>(name);
    return std::span(refs_).subspan(begins_[id], begins_[id + 1] - begins_[id]);
  }
  int64_t total_ns(StringId name) const { return totals_[static_cast<size_t>(name)]; }

  // Names of slices that contain `text` in any case, or equal it. All of them for "".
  std::vector<StringId> find(const Model& model, std::string_view text, bool exact) const;

 private:
  std::vector<uint32_t> begins_;  // one per text of the pool, and the end
  std::vector<uint32_t> refs_;
  std::vector<int64_t> totals_;
};

}  // namespace firelane::serve
