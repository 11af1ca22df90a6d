#include "import/lane/light_ops.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "import/lane/align.h"
#include "model/host_role.h"

namespace firelane::importer {
namespace {

constexpr size_t kMaxFullSteps = 8;    // that a light step is compared with
constexpr size_t kMaxEnclosing = 256;  // slices around a launch, innermost first

// One piece of device work, in its place in a step.
struct Item {
  int64_t launch_ns = 0;
  int64_t start_ns = 0;
  uint64_t token = 0;  // name and size of the launch
  uint64_t name = 0;
  Row row = 0;          // of device_slices
  Row launch = kNoRow;  // of host_slices
  Row twin = kNoRow;    // light items: of the full model's device_slices
  bool is_resized = false;
};

struct Sequence {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::vector<Item> items;
};

uint64_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

uint64_t kernel_token(uint64_t name, const auto& grid) {
  uint64_t token = name;
  for (const int32_t side : grid) token = mix_hash(token, static_cast<uint64_t>(side));
  return token;
}

void put_into_steps(std::vector<Sequence>& steps, std::vector<Item> items) {
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::pair(a.launch_ns, a.start_ns) < std::pair(b.launch_ns, b.start_ns);
  });
  std::sort(steps.begin(), steps.end(), [](const Sequence& a, const Sequence& b) { return a.begin_ns < b.begin_ns; });
  for (const Item& item : items) {
    const auto after = std::partition_point(steps.begin(), steps.end(),
                                            [&](const Sequence& step) { return step.begin_ns <= item.launch_ns; });
    if (after != steps.begin() && item.launch_ns < std::prev(after)->end_ns) std::prev(after)->items.push_back(item);
  }
}

std::vector<Sequence> full_steps(const Model& model) {
  std::vector<Sequence> steps;
  for (size_t i = 0; i < model.steps.size(); ++i) {
    steps.push_back({model.steps.start_ns[i], model.steps.start_ns[i] + model.steps.duration_ns[i], {}});
  }
  std::vector<Item> items;
  const DeviceSlices& slices = model.device_slices;
  const KernelDetails& k = model.kernel_details;
  for (Row row = 0; row < slices.size(); ++row) {
    if (!is_launched(slices.kind[row]) || slices.launch[row] == kNoRow) continue;
    const Row detail = slices.detail[row];
    Item item{.launch_ns = model.host_slices.start_ns[slices.launch[row]],
              .start_ns = slices.start_ns[row],
              .name = hash_of(model.text(slices.name[row])),
              .row = row,
              .launch = slices.launch[row]};
    item.token = item.name;
    if (slices.kind[row] == DeviceKind::kKernel && detail != kNoRow) {
      item.token = kernel_token(item.name, std::array{k.grid_x[detail], k.grid_y[detail], k.grid_z[detail],
                                                      k.block_x[detail], k.block_y[detail], k.block_z[detail]});
    } else if (detail != kNoRow) {
      item.token = mix_hash(item.name, static_cast<uint64_t>(model.copy_details.bytes[detail]));
    }
    items.push_back(item);
  }
  put_into_steps(steps, std::move(items));
  std::erase_if(steps, [](const Sequence& step) { return step.items.empty(); });
  return steps;
}

std::vector<Sequence> light_steps(const RawPool& pool, const RawPart& part) {
  std::vector<Sequence> steps;
  std::unordered_map<int64_t, Row> call_of;
  for (Row row = 0; row < part.host_slices.size(); ++row) {
    const RawHostSlice& slice = part.host_slices[row];
    if (is_call(slice.kind)) {
      call_of.emplace(part.call_details[slice.detail].correlation, row);
    } else if (slice.kind == HostKind::kAnnotation && role_of(pool.strings.view(slice.name)) == HostRole::kStep) {
      steps.push_back({slice.start_ns, slice.start_ns + slice.duration_ns, {}});
    }
  }
  std::vector<Item> items;
  for (Row row = 0; row < part.device_slices.size(); ++row) {
    const RawDeviceSlice& slice = part.device_slices[row];
    const auto call = call_of.find(slice.correlation);
    if (!is_launched(slice.kind) || call == call_of.end()) continue;
    Item item{.launch_ns = part.host_slices[call->second].start_ns,
              .start_ns = slice.start_ns,
              .name = hash_of(pool.strings.view(slice.name)),
              .row = row,
              .launch = call->second};
    item.token = item.name;
    if (slice.kind == DeviceKind::kKernel && slice.detail != kNoRow) {
      const RawKernel& k = part.kernel_details[slice.detail];
      item.token = kernel_token(item.name, std::array{k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z});
    } else if (slice.detail != kNoRow) {
      item.token = mix_hash(item.name, static_cast<uint64_t>(part.copy_details[slice.detail].bytes));
    }
    items.push_back(item);
  }
  put_into_steps(steps, std::move(items));
  return steps;
}

std::vector<uint64_t> tokens_of(std::span<const Item> items, uint64_t Item::* key) {
  std::vector<uint64_t> tokens;
  for (const Item& item : items) tokens.push_back(item.*key);
  return tokens;
}

// Pairs what is between two pairs, where names are the same.
void pair_by_name(Sequence& light, const Sequence& full, std::vector<uint32_t>& partner) {
  uint32_t b_begin = 0;
  for (uint32_t i = 0; i < partner.size();) {
    if (partner[i] != kUnpaired) {
      b_begin = partner[i++] + 1;
      continue;
    }
    uint32_t end = i;
    while (end < partner.size() && partner[end] == kUnpaired) ++end;
    const auto b_end = end < partner.size() ? partner[end] : static_cast<uint32_t>(full.items.size());
    const std::span<const Item> a(light.items.data() + i, end - i);
    const std::span<const Item> b(full.items.data() + b_begin, b_end - b_begin);
    const std::vector<uint32_t> inner = align(tokens_of(a, &Item::name), tokens_of(b, &Item::name));
    for (uint32_t j = 0; j < inner.size(); ++j) {
      if (inner[j] == kUnpaired) continue;
      partner[i + j] = b_begin + inner[j];
      light.items[i + j].is_resized = true;
    }
    i = end;
  }
}

void find_twins(Sequence& light, const std::vector<Sequence>& full) {
  const std::vector<uint64_t> tokens = tokens_of(light.items, &Item::token);
  std::vector<uint32_t> best;
  size_t best_unpaired = SIZE_MAX;
  const Sequence* best_step = nullptr;
  for (size_t i = 0; i < std::min(full.size(), kMaxFullSteps) && best_unpaired > 0; ++i) {
    std::vector<uint32_t> partner = align(tokens, tokens_of(full[i].items, &Item::token));
    const auto unpaired = static_cast<size_t>(std::count(partner.begin(), partner.end(), kUnpaired));
    if (unpaired >= best_unpaired) continue;
    best = std::move(partner);
    best_unpaired = unpaired;
    best_step = &full[i];
  }
  if (best_step == nullptr) return;
  if (best_unpaired > 0) pair_by_name(light, *best_step, best);
  for (size_t i = 0; i < best.size(); ++i) {
    if (best[i] != kUnpaired) light.items[i].twin = best_step->items[best[i]].row;
  }
}

// Lays the slices around twins around the light launches.
class Layer {
 public:
  Layer(RawPool& pool, RawPart& part, const Model& full) : pool_(pool), part_(part), full_(full) {}

  void add(const Item& item) {
    const RawHostSlice& call = part_.host_slices[item.launch];
    const int64_t end_ns = call.start_ns + call.duration_ns + 1;  // a call of no length lies inside, too
    std::vector<Row> around;                                      // outermost first
    for (Row row = full_.host_slices.parent[full_.device_slices.launch[item.twin]];
         row != kNoRow && around.size() < kMaxEnclosing; row = full_.host_slices.parent[row]) {
      if (is_wanted(row)) around.push_back(row);
    }
    std::reverse(around.begin(), around.end());
    std::vector<Open>& open = open_[call.lane];
    size_t common = 0;
    while (common < open.size() && common < around.size() && open[common].full == around[common]) ++common;
    open.resize(common);
    for (size_t i = common; i < around.size(); ++i) open.push_back({around[i], add_slice(around[i], call)});
    for (const Open& each : open) {
      RawHostSlice& slice = added_[each.added];
      slice.duration_ns = std::max(slice.duration_ns, end_ns - slice.start_ns);
    }
  }

  // Work without a twin lies in no op.
  void interrupt(const Item& item) { open_[part_.host_slices[item.launch].lane].clear(); }

  // Before the calls: of slices that begin and end together, the first one is the outer one.
  void finish() {
    const auto first = part_.host_slices.begin();
    part_.host_slices.insert(first, added_.begin(), added_.end());
    part_.event_count += added_.size();
  }

 private:
  struct Open {
    Row full = kNoRow;
    size_t added = 0;
  };

  bool is_wanted(Row row) const {
    const HostKind kind = full_.host_slices.kind[row];
    return (kind == HostKind::kOp || kind == HostKind::kPython || kind == HostKind::kAnnotation ||
            kind == HostKind::kOther) &&
           full_.host_slices.role[row] != HostRole::kStep;
  }

  StringId text(StringId of_full) { return pool_.strings.intern(full_.text(of_full)); }

  size_t add_slice(Row row, const RawHostSlice& call) {
    const HostSlices& from = full_.host_slices;
    RawHostSlice slice{.start_ns = call.start_ns,
                       .duration_ns = 0,
                       .lane = call.lane,
                       .name = text(from.name[row]),
                       .category = text(from.category[row]),
                       .kind = from.kind[row],
                       .module = from.module[row]};
    const Row detail = from.detail[row];
    if (detail != kNoRow && (slice.kind == HostKind::kOp || slice.kind == HostKind::kAnnotation)) {
      const OpDetails& ops = full_.op_details;
      slice.detail = static_cast<Row>(part_.op_details.size());
      RawOp& op = part_.op_details.emplace_back();
      op.external_id = static_cast<int64_t>(part_.op_details.size());
      op.input_dims = text(ops.input_dims[detail]);
      op.input_types = text(ops.input_types[detail]);
      op.input_strides = text(ops.input_strides[detail]);
      op.concrete_inputs = text(ops.concrete_inputs[detail]);
      op.stack = text(ops.stack[detail]);
      op.module_hierarchy = text(ops.module_hierarchy[detail]);
      op.overload = text(ops.overload[detail]);
      op.flops = ops.flops[detail];
    }
    added_.push_back(slice);
    return added_.size() - 1;
  }

  RawPool& pool_;
  RawPart& part_;
  const Model& full_;
  std::unordered_map<LaneId, std::vector<Open>> open_;
  std::vector<RawHostSlice> added_;
};

}  // namespace

void add_light_ops(RawTrace& light, const Model& full) {
  RawPart& part = light.parts.front();
  LightInfo& info = light.info.light;
  info.work = std::count_if(part.device_slices.begin(), part.device_slices.end(),
                            [](const RawDeviceSlice& slice) { return is_launched(slice.kind); });
  const std::vector<Sequence> known = full_steps(full);
  Layer layer(light.pools.front(), part, full);
  for (Sequence& step : light_steps(light.pools.front(), part)) {
    find_twins(step, known);
    for (const Item& item : step.items) {
      if (item.twin == kNoRow || full.device_slices.op[item.twin] == kNoRow) {
        layer.interrupt(item);
        continue;
      }
      ++(item.is_resized ? info.resized : info.same);
      layer.add(item);
    }
  }
  layer.finish();
  light.losses[Stat::kLightWorkWithoutTwin] += static_cast<uint64_t>(std::max<int64_t>(0, info.other()));
}

}  // namespace firelane::importer
