#include "analyze/ops/tensor_flow.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace firelane::analyze {

namespace {

// The storages in [[tensor, storage, ...], null, [[tensor, storage, ...]]].
template <typename Visit>
void each_storage(std::string_view json, const Visit& visit) {
  for (size_t at = 0; at + 1 < json.size(); ++at) {
    if (json[at] != '[' || json[at + 1] < '0' || json[at + 1] > '9') continue;
    const size_t comma = json.find(',', at);
    if (comma == std::string_view::npos) return;
    size_t number = comma + 1;
    while (number < json.size() && json[number] == ' ') ++number;
    uint64_t storage = 0;
    const auto [end, error] = std::from_chars(json.data() + number, json.data() + json.size(), storage);
    if (error != std::errc()) return;
    if (storage != 0) visit(storage);
    at = static_cast<size_t>(end - json.data()) - 1;
  }
}

}  // namespace

TensorFlow::TensorFlow(const Model& model) : model_(model) {
  const auto tensors = model.op_details.tensors.view().cells();
  const bool says = std::any_of(tensors.begin(), tensors.end(), [](StringId id) { return id != kNoString; });
  if (!says || model.memory_events.size() == 0) return;
  for (size_t i = 0; i < model.memory_events.size(); ++i) {
    if (model.memory_events.kind[i] == MemoryEventKind::kAlloc)
      allocations_.emplace_back(model.memory_events.address[i], model.memory_events.time_ns[i]);
  }
  std::sort(allocations_.begin(), allocations_.end());
  is_known_ = !allocations_.empty();
}

std::vector<TensorFlow::Input> TensorFlow::inputs_of(Row op) const {
  std::vector<Input> inputs;
  const Row detail = model_.op_detail(op);
  if (!is_known_ || detail == kNoRow || model_.op_details.tensors[detail] == kNoString) return inputs;
  each_storage(model_.text(model_.op_details.tensors[detail]), [&](uint64_t storage) {
    const auto after =
        std::upper_bound(allocations_.begin(), allocations_.end(), std::pair(storage, model_.host_slices.start_ns[op]));
    const bool is_known = after != allocations_.begin() && std::prev(after)->first == storage;
    inputs.push_back({.storage = storage, .made_ns = is_known ? std::prev(after)->second : kNoNumber});
  });
  return inputs;
}

}  // namespace firelane::analyze
