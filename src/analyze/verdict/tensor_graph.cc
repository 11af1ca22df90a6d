#include "analyze/verdict/tensor_graph.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "analyze/host/cpu_ops.h"
#include "analyze/ops/op_storages.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/results.h"
#include "analyze/verdict/study.h"
#include "base/text.h"

namespace firelane::analyze {

namespace {

// Look at memory in another way, or ask for some; views that is_view_op leaves out because they may copy.
constexpr std::array<std::string_view, 31> kIdle = {"aten::unfold",
                                                    "aten::narrow",
                                                    "aten::mT",
                                                    "aten::mH",
                                                    "aten::adjoint",
                                                    "aten::diagonal",
                                                    "aten::movedim",
                                                    "aten::swapaxes",
                                                    "aten::view_as",
                                                    "aten::unflatten",
                                                    "aten::reshape",
                                                    "aten::contiguous",
                                                    "aten::to",
                                                    "aten::type_as",
                                                    "aten::result_type",
                                                    "aten::resolve_conj",
                                                    "aten::resolve_neg",
                                                    "aten::lift_fresh",
                                                    "aten::resize_",
                                                    "aten::empty_strided",
                                                    "aten::new_empty",
                                                    "aten::broadcast_to",
                                                    "aten::item",
                                                    "aten::broadcast_tensors",
                                                    "aten::split_with_sizes",
                                                    "aten::dropout",
                                                    "aten::tensor_split",
                                                    "aten::new_empty_strided",
                                                    "aten::set_",
                                                    "aten::pin_memory",
                                                    "aten::numpy_T"};
// Do what they are for themselves, whatever they call for it.
constexpr std::array<std::string_view, 4> kWhole = {"aten::im2col", "aten::col2im", "aten::sum", "aten::sort"};
// Fill memory: what an operator calls to prepare its result.
constexpr std::array<std::string_view, 4> kFills = {"aten::fill_", "aten::zero_", "aten::zeros", "aten::zeros_like"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct NodeKind {
  bool is_aten = false;
  bool is_idle = false;
  bool is_whole = false;
  bool fills = false;
  bool writes_first = false;
  bool writes_all = false;
  bool overwrites = false;  // without reading what was there
};

NodeKind kind_of_node(std::string_view name) {
  NodeKind kind{.is_aten = name.starts_with("aten::")};
  kind.is_idle = is_view_op(name) || is_among(kIdle, name) || name == "detach" || name == "detach_";
  kind.is_whole = is_among(kWhole, name);
  kind.fills = is_among(kFills, name);
  if (kind.is_aten && !kind.is_idle && name.ends_with('_') && !name.ends_with("__")) {
    kind.writes_all = contains(name, "foreach") || contains(name, "fused") || contains(name, "amp");
    kind.writes_first = !kind.writes_all;
  }
  if (name.starts_with("aten::__i") && name.ends_with("__")) kind.writes_first = true;
  kind.overwrites = name == "aten::copy_" || name == "aten::fill_" || name == "aten::zero_";
  return kind;
}

class GraphOfTensors {
 public:
  GraphOfTensors(const StudiedTrace& trace, const Study& study)
      : model_(trace.model()), host_(model_.host_slices), phases_(trace.get<find_phases>()), study_(study) {}

  TensorGraph run() {
    kinds_.resize(model_.strings.size());
    known_.resize(model_.strings.size());
    find_nodes();
    if (graph_.nodes.empty()) return {};
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
      see_memory_until(host_.start_ns[graph_.nodes[node].op]);
      look_at(node);
    }
    see_memory_until(INT64_MAX);
    link_backward();
    set_times();
    return std::move(graph_);
  }

 private:
  const NodeKind& kind(Row op) {
    const auto name = static_cast<uint32_t>(host_.name[op]);
    if (!known_[name]) kinds_[name] = kind_of_node(model_.text(host_.name[op]));
    known_[name] = true;
    return kinds_[name];
  }
  const std::vector<StorageInput>& storages_of(Row op) {
    const auto [found, is_new] = storages_.try_emplace(op);
    if (is_new) found->second = storages_of_op(model_, op);
    return found->second;
  }
  const std::vector<Dims>& dims_of(StringId text) {
    const auto [found, is_new] = dims_.try_emplace(static_cast<uint32_t>(text));
    if (is_new && text != kNoString) found->second = parse_input_dims(model_.text(text));
    return found->second;
  }

  // Parents come before their children on a lane: from the last to the first, each knows what is below it.
  void find_nodes() {
    std::vector<Row> ops;
    std::vector<uint8_t> works(host_.size());   // it, or something that it calls
    std::vector<uint8_t> splits(host_.size());  // it calls others that do all that it does
    for (Row row = static_cast<Row>(host_.size()); row-- > 0;) {
      if (host_.kind[row] != HostKind::kOp) continue;
      const Interval& window = study_.steps.window;
      if (host_.start_ns[row] < window.start_ns || host_.start_ns[row] >= window.end_ns) continue;
      const NodeKind& what = kind(row);
      const bool below = splits[row] != 0;
      works[row] = below || !what.is_idle;
      const Row parent = host_.parent[row];
      if (works[row] != 0 && parent != kNoRow && (below || !what.fills)) splits[parent] = 1;
      ops.push_back(row);
    }
    std::reverse(ops.begin(), ops.end());
    std::vector<uint8_t> inside(host_.size());
    for (const Row row : ops) {
      const Row parent = host_.parent[row];
      if (parent != kNoRow && inside[parent] != 0) {
        inside[row] = 1;
        continue;
      }
      if (works[row] == 0) continue;
      const NodeKind& what = kind(row);
      if (splits[row] != 0 && !what.is_whole && (!what.is_aten || below_reads_all(row))) continue;
      inside[row] = 1;
      graph_.nodes.push_back({.op = row, .in_backward = phases_.host[row] == Phase::kBackward, .uses = {}, .made = {}});
    }
    std::stable_sort(graph_.nodes.begin(), graph_.nodes.end(), [&](const TensorNode& a, const TensorNode& b) {
      return host_.start_ns[a.op] < host_.start_ns[b.op];
    });
  }

  // mse_loss calls mean for a part of what it does: what it reads itself has no other reader.
  bool below_reads_all(Row op) {
    std::vector<uint64_t> wanted;
    for (const StorageInput& input : storages_of(op)) wanted.push_back(input.storage);
    for (Row row = op + 1; row < host_.size() && host_.start_ns[row] < host_.end_ns(op) && !wanted.empty(); ++row) {
      if (host_.lane[row] != host_.lane[op]) break;
      if (host_.kind[row] != HostKind::kOp || kind(row).is_idle) continue;
      for (const StorageInput& input : storages_of(row)) std::erase(wanted, input.storage);
    }
    return wanted.empty();
  }

  uint32_t new_value(uint64_t address, int64_t bytes, uint32_t maker) {
    const auto value = static_cast<uint32_t>(graph_.values.size());
    graph_.values.push_back({.maker = maker, .bytes = bytes, .readers = {}});
    value_at_[address] = value;
    return value;
  }

  void see_memory_until(int64_t time_ns) {
    const MemoryEvents& memory = model_.memory_events;
    for (; event_ < memory.size() && memory.time_ns[event_] < time_ns; ++event_) {
      const uint64_t address = memory.address[event_];
      const int64_t now_ns = memory.time_ns[event_];
      if (memory.kind[event_] == MemoryEventKind::kFree) {
        const auto found = value_at_.find(address);
        if (found == value_at_.end()) continue;
        TensorValue& value = graph_.values[found->second];
        value.is_freed = true;
        const bool is_scratch = value.maker != kNoMaker && now_ns < host_.end_ns(graph_.nodes[value.maker].op);
        if (is_scratch) std::erase(graph_.nodes[value.maker].made, found->second);
        value_at_.erase(found);
      } else if (memory.kind[event_] == MemoryEventKind::kAlloc) {
        const auto open = open_.find(memory.lane[event_]);
        const bool is_inside = open != open_.end() && now_ns < host_.end_ns(graph_.nodes[open->second].op);
        const uint32_t value = new_value(address, memory.bytes[event_], is_inside ? open->second : kNoMaker);
        if (is_inside) graph_.nodes[open->second].made.push_back(value);
      }
    }
  }

  void look_at(uint32_t at) {
    TensorNode& node = graph_.nodes[at];
    const NodeKind& what = kind(node.op);
    const Row detail = model_.op_detail(node.op);
    open_[host_.lane[node.op]] = at;
    const std::vector<StorageInput>& inputs = storages_of(node.op);
    if (detail == kNoRow || inputs.empty()) return;
    const std::vector<Dims>& dims = dims_of(model_.op_details.input_dims[detail]);
    const std::vector<Dims>& strides = dims_of(model_.op_details.input_strides[detail]);
    const StringId overload = model_.op_details.overload[detail];
    const bool has_out = overload != kNoString && contains(model_.text(overload), "out");
    for (size_t i = 0; i < inputs.size(); ++i) {
      const StorageInput& input = inputs[i];
      const auto found = value_at_.find(input.storage);
      TensorUse use{.value = found != value_at_.end() ? found->second : new_value(input.storage, 0, kNoMaker),
                    .place = input.place,
                    .in_list = input.in_list,
                    .dims = {},
                    .strides = {},
                    .element_bytes = bytes_of_type(input.type)};
      if (!input.in_list && input.place < dims.size()) use.dims = dims[input.place];
      if (!input.in_list && input.place < strides.size() && strides[input.place].size() == use.dims.size())
        use.strides = strides[input.place];
      const bool is_out = has_out && i + 1 == inputs.size();
      const bool writes = what.writes_all || is_out || (what.writes_first && i == 0);
      // What is written over in part is there for those who read it later.
      const bool is_over = what.overwrites && i == 0 && fills(use);
      const bool reads = !is_out && !is_over;
      if (reads) {
        std::vector<uint32_t>& readers = graph_.values[use.value].readers;
        if (readers.empty() || readers.back() != at) readers.push_back(at);
      }
      if (writes) {
        TensorValue& before = graph_.values[use.value];
        before.is_freed = true;
        const int64_t bytes = before.bytes;
        node.made.push_back(new_value(input.storage, bytes, at));
      }
      node.uses.push_back(std::move(use));
    }
  }

  bool fills(const TensorUse& use) const {
    constexpr double kRounding = 512;  // of the caching allocator
    const auto bytes = static_cast<double>(graph_.values[use.value].bytes);
    return bytes > 0 && use.bytes() + kRounding > bytes;
  }

  void link_backward() {
    std::unordered_map<Row, uint32_t> node_of;
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node) node_of[graph_.nodes[node].op] = node;
    for (uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      TensorNode& node = graph_.nodes[at];
      if (!node.in_backward) continue;
      Row forward = kNoRow;
      for (Row row = node.op; row != kNoRow && forward == kNoRow; row = host_.parent[row]) {
        const Row detail = host_.kind[row] == HostKind::kOp ? model_.op_detail(row) : kNoRow;
        if (detail != kNoRow) forward = model_.op_details.forward[detail];
      }
      if (forward == kNoRow) continue;
      node.forward = node_around(forward, node_of);
      if (node.forward != kNoMaker) graph_.backward[node.forward].push_back(at);
    }
  }

  // The node that is that operator, holds it, or is the first that it calls.
  uint32_t node_around(Row op, const std::unordered_map<Row, uint32_t>& node_of) const {
    for (Row row = op; row != kNoRow; row = host_.parent[row]) {
      if (const auto found = node_of.find(row); found != node_of.end()) return found->second;
    }
    for (Row row = op + 1; row < host_.size() && host_.lane[row] == host_.lane[op]; ++row) {
      if (host_.start_ns[row] >= host_.end_ns(op)) break;
      if (const auto found = node_of.find(row); found != node_of.end()) return found->second;
    }
    return kNoMaker;
  }

  void set_times() {
    graph_.on_device = study_.has_device_work;
    if (!graph_.on_device) {
      for (TensorNode& node : graph_.nodes) node.time_ns = host_.duration_ns[node.op];
      return;
    }
    std::unordered_map<Row, uint32_t> node_of;
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node) node_of[graph_.nodes[node].op] = node;
    const DeviceSlices& device = model_.device_slices;
    graph_.node_of_work.assign(device.size(), kNoMaker);
    for (Row work = 0; work < device.size(); ++work) {
      Row row = device.launch[work];
      while (row != kNoRow && !node_of.contains(row)) row = host_.parent[row];
      if (row == kNoRow) continue;
      graph_.node_of_work[work] = node_of.at(row);
      graph_.nodes[node_of.at(row)].time_ns += device.duration_ns[work];
    }
  }

  const Model& model_;
  const HostSlices& host_;
  const Phases& phases_;
  const Study& study_;
  TensorGraph graph_;
  std::vector<NodeKind> kinds_;  // by name
  std::vector<uint8_t> known_;
  std::unordered_map<Row, std::vector<StorageInput>> storages_;
  std::unordered_map<uint32_t, std::vector<Dims>> dims_;  // by text
  std::unordered_map<uint64_t, uint32_t> value_at_;       // by address
  std::unordered_map<LaneId, uint32_t> open_;             // the last node of each lane
  size_t event_ = 0;
};

}  // namespace

int64_t TensorUse::elements() const {
  int64_t count = 1;
  for (const int64_t size : dims) {
    if (__builtin_mul_overflow(count, size, &count)) return 0;
  }
  return count;
}

int64_t TensorUse::distinct_elements() const {
  int64_t count = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool is_expanded = i < strides.size() && strides[i] == 0;
    if (!is_expanded && __builtin_mul_overflow(count, dims[i], &count)) return 0;
  }
  return count;
}

TensorGraph tensor_graph(const StudiedTrace& trace) {
  const Model& model = trace.model();
  const auto tensors = model.op_details.tensors.view().cells();
  const bool follows = std::any_of(tensors.begin(), tensors.end(), [](StringId id) { return id != kNoString; });
  if (!follows || model.memory_events.size() == 0 || hides_data(model)) return {};
  return GraphOfTensors(trace, trace.get<study>()).run();
}

}  // namespace firelane::analyze
