#include "analyze/ops/ops_groups.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "analyze/ops/op_inputs.h"
#include "base/hash.h"
#include "model/host_role.h"

namespace firelane::analyze {

namespace {

constexpr std::array<std::string_view, 3> kMadeUpNames = {"ProfilerStep*", "[memory]", "[OutOfMemory]"};

// Utility ops of torch's own machinery; it hides them, and so their time stays with the parent.
constexpr std::array<std::string_view, 8> kIgnoredNames = {
    "[memory]",
    "[OutOfMemory]",
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
};

}  // namespace

OpsGroups::OpsGroups(const Model& model, bool has_details)
    : model_(model),
      first_made_up_(static_cast<uint32_t>(model.strings.size())),
      has_details_(has_details),
      key_of_(model.strings.size(), kUnknown),
      group_of_(has_details ? 256 : (model.strings.size() + kMadeUpNames.size()) * 4, kFree),
      shape_of_(has_details ? model.strings.size() : 0, kUnknown),
      shapes_{"[]"},
      shape_ids_{{"[]", 0}} {}

OpsKey OpsGroups::classify(StringId name) {
  const std::string_view text = model_.text(name);
  OpsKey key = static_cast<OpsKey>(name);
  if (role_of(text) == HostRole::kStep) key = first_made_up_;
  if (std::find(kIgnoredNames.begin(), kIgnoredNames.end(), text) != kIgnoredNames.end()) key = kIgnoredKey;
  return key_of_[static_cast<uint32_t>(name)] = key;
}

uint32_t OpsGroups::shape_of(StringId input_dims) {
  uint32_t& shape = shape_of_[static_cast<uint32_t>(input_dims)];
  if (shape != kUnknown) return shape;
  std::string text = dims_text(parse_input_dims(model_.text(input_dims)));
  const auto [at, is_new] = shape_ids_.try_emplace(std::move(text), static_cast<uint32_t>(shapes_.size()));
  if (is_new) shapes_.push_back(at->first);
  return shape = at->second;
}

void OpsGroups::add(const OpsEvent& event) {
  const uint32_t index = find(event);
  Group& group = groups_[index];
  OpsRow& row = group.row;
  if (std::tuple(event.start_ns, -event.duration_ns, event.order) <
      std::tuple(group.first_start_ns, -group.first_duration_ns, group.first_order)) {
    group.first_start_ns = event.start_ns;
    group.first_duration_ns = event.duration_ns;
    group.first_order = event.order;
    row.is_async = event.is_async;
    row.is_top_level = event.is_top_level;
  }
  ++row.count;
  const auto add = [](int64_t& sum, int64_t number) { sum = wrap_add(sum, number); };
  add(row.self_cpu_time_total_ns, event.self_cpu_ns);
  add(row.cpu_time_total_ns, event.cpu_ns);
  add(row.self_device_time_total_ns, event.self_device_ns);
  add(row.device_time_total_ns, event.device_ns);
  add(row.cpu_memory_usage_bytes, event.memory.cpu_bytes);
  add(row.self_cpu_memory_usage_bytes, event.self_memory.cpu_bytes);
  add(row.device_memory_usage_bytes, event.memory.device_bytes);
  add(row.self_device_memory_usage_bytes, event.self_memory.device_bytes);
  add(row.flops, event.flops);
  add(row.flops_total, event.flops_total);
  add(row.self_flops, event.self_flops);
}

uint32_t OpsGroups::find(const OpsEvent& event) {
  const Key key{.name = event.key,
                .shape = event.shape,
                .stack = event.stack,
                .overload = event.overload,
                .side = static_cast<uint8_t>((event.on_device ? 2 : 0) | (event.is_user_annotation ? 1 : 0))};
  if (!has_details_) {
    uint32_t& group = group_of_[size_t{event.key} * 4 + key.side];
    return group != kFree ? group : group = new_group(event, key);
  }
  const size_t slot = slot_of(key);
  if (group_of_[slot] != kFree) return group_of_[slot];
  const uint32_t group = group_of_[slot] = new_group(event, key);
  if (groups_.size() * 2 > group_of_.size()) {
    group_of_.assign(group_of_.size() * 2, kFree);
    for (uint32_t g = 0; g < groups_.size(); ++g) group_of_[slot_of(groups_[g].key)] = g;
  }
  return group;
}

size_t OpsGroups::slot_of(const Key& key) const {
  const size_t mask = group_of_.size() - 1;
  const uint64_t details = uint64_t{key.stack} << 32 | static_cast<uint32_t>(key.overload) << 2 | key.side;
  size_t at = mix_hash(uint64_t{key.name} << 32 | key.shape, details) & mask;
  while (group_of_[at] != kFree && groups_[group_of_[at]].key != key) at = (at + 1) & mask;
  return at;
}

uint32_t OpsGroups::new_group(const OpsEvent& event, const Key& key) {
  Group group;
  group.row.on_device = event.on_device;
  group.row.is_user_annotation = event.is_user_annotation;
  group.row.is_async = event.is_async;
  group.row.is_top_level = event.is_top_level;
  group.first_start_ns = event.start_ns;
  group.first_duration_ns = event.duration_ns;
  group.first_order = event.order;
  group.key = key;
  groups_.push_back(std::move(group));
  return static_cast<uint32_t>(groups_.size() - 1);
}

std::vector<OpsRow> OpsGroups::rows(bool with_shapes, const OpsStacks* stacks) {
  std::sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
    return std::tuple(a.first_start_ns, -a.first_duration_ns, a.first_order, a.key.side) <
           std::tuple(b.first_start_ns, -b.first_duration_ns, b.first_order, b.key.side);
  });
  std::vector<OpsRow> rows;
  rows.reserve(groups_.size());
  for (Group& group : groups_) {
    OpsRow& row = rows.emplace_back(std::move(group.row));
    const Key& key = group.key;
    row.name = key.name >= first_made_up_ ? kMadeUpNames[key.name - first_made_up_]
                                          : model_.text(static_cast<StringId>(key.name));
    row.overload = model_.text(key.overload);
    if (with_shapes) row.input_shapes = shapes_[key.shape];
    if (stacks != nullptr) row.stack = stacks->frames(key.stack);
  }
  return rows;
}

}  // namespace firelane::analyze
