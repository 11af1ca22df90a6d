#include "analyze/verdict/same_values.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "analyze/host/cpu_ops.h"
#include "analyze/ops/op_inputs.h"
#include "analyze/ops/op_storages.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/find_steps.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/results.h"
#include "base/hash.h"
#include "base/text.h"

namespace firelane::analyze {

namespace {

// By its name; what it does to its inputs.
struct Kind {
  bool view = false;
  bool new_value = false;  // its result is another one every time
  bool writes_first = false;
  bool writes_all = false;
};

bool is_autograd(std::string_view name) { return name.starts_with("autograd::"); }

Kind kind_of(std::string_view name) {
  Kind kind{.view = is_view_op(name)};
  if (!name.starts_with("aten::") && !name.starts_with("detach")) {
    kind.new_value = true;
    kind.writes_all = !is_autograd(name) && !name.starts_with("torch::autograd") && !contains(name, "Backward");
    return kind;
  }
  for (const std::string_view part : {"rand", "normal", "uniform", "multinomial", "dropout", "bernoulli", "exponential",
                                      "empty", "from_file", "resize", "new_full", "poisson"}) {
    kind.new_value = kind.new_value || contains(name, part);
  }
  const bool marks = name == "aten::requires_grad_" || name == "aten::detach_" || name == "detach_";
  if (name.ends_with('_') && !name.ends_with("__") && !marks) {
    kind.writes_all = contains(name, "foreach") || contains(name, "fused") || contains(name, "amp");
    kind.writes_first = !kind.writes_all;
  }
  if (name.starts_with("aten::__i") && name.ends_with("__")) kind.writes_first = true;
  return kind;
}

class Numbering {
 public:
  Numbering(const Model& model, const Phases& phases, const StepList& steps)
      : model_(model), host_(model.host_slices), phases_(phases), steps_(steps) {}

  SameValues run() {
    SameValues out;
    const auto tensors = model_.op_details.tensors.view().cells();
    const bool follows = std::any_of(tensors.begin(), tensors.end(), [](StringId id) { return id != kNoString; });
    if (!follows || model_.memory_events.size() == 0 || hides_data(model_)) return out;
    out.is_known = true;
    kinds_.resize(model_.strings.size());
    known_.resize(model_.strings.size());
    size_t step = 0;
    for (const Row op : ops_in_order()) {
      const int64_t start_ns = host_.start_ns[op];
      while (step < steps_.steps.size() && start_ns >= steps_.steps[step].end_ns) {
        ++step;
        before_ = std::move(now_);
        now_.clear();
      }
      see_memory_until(start_ns);
      const bool judged =
          step < steps_.steps.size() && start_ns >= steps_.steps[step].start_ns && !steps_.steps[step].warm_up;
      look_at(op, judged);
    }
    see_memory_until(INT64_MAX);
    for (Candidate& each : candidates_) {
      const bool is_written =
          std::any_of(each.made.begin(), each.made.end(), [&](size_t block) { return blocks_[block].written; });
      (is_written ? out.written : each.in_step ? out.in_step : out.every_step).push_back(std::move(each.same));
    }
    return out;
  }

 private:
  // An operator that made a tensor of the same memory.
  struct ViewMade {
    uint64_t from = 0;     // the tensor that it took
    int64_t elements = 0;  // at most, of what it made
  };
  // Memory from an allocation until it is given back; or from before the recording.
  struct Block {
    uint64_t value = 0;
    int64_t bytes = 0;  // 0: from before the recording
    Row maker = kNoRow;
    uint64_t last_view = 0;
    uint64_t views = 0;    // tensors seen since that was made
    bool written = false;  // after it was made
    std::vector<ViewMade> made;
  };
  struct Candidate {
    SameValue same;
    bool in_step = true;
    std::vector<size_t> made;
  };
  // What a tensor shows of its memory.
  struct View {
    size_t block = 0;
    uint64_t key = 0;
    uint64_t shape = 0;
    size_t seen = 0;  // so many views had been made of the block
  };

  const Kind& kind(Row op) {
    const auto name = static_cast<uint32_t>(host_.name[op]);
    if (!known_[name]) kinds_[name] = kind_of(model_.text(host_.name[op]));
    known_[name] = true;
    return kinds_[name];
  }

  // Outermost ones of the forward pass and the update; of the backward pass all, because its nodes write through what
  // they call.
  std::vector<Row> ops_in_order() const {
    std::vector<Row> ops;
    for (Row row = 0; row < host_.size(); ++row) {
      if (host_.kind[row] != HostKind::kOp) continue;
      Row outer = host_.parent[row];
      while (outer != kNoRow && host_.kind[outer] != HostKind::kOp) outer = host_.parent[outer];
      if (outer == kNoRow || phases_.host[row] == Phase::kBackward) ops.push_back(row);
    }
    std::sort(ops.begin(), ops.end(), [&](Row a, Row b) {
      return host_.start_ns[a] != host_.start_ns[b] ? host_.start_ns[a] < host_.start_ns[b] : a < b;
    });
    return ops;
  }

  // Views that may have more elements than the tensor they show.
  bool makes_larger(StringId name) const {
    const std::string_view text = model_.text(name);
    return contains(text, "expand") || contains(text, "unfold") || contains(text, "strided") ||
           contains(text, "broadcast");
  }

  size_t new_block(uint64_t address, int64_t bytes) {
    blocks_.push_back({.value = mix_hash(0x5a5a5a5a, ++fresh_), .bytes = bytes});
    block_at_[address] = blocks_.size() - 1;
    return blocks_.size() - 1;
  }

  // Allocations and frees up to that moment. What the open op of the lane asks for, it makes.
  void see_memory_until(int64_t time_ns) {
    const MemoryEvents& memory = model_.memory_events;
    for (; event_ < memory.size() && memory.time_ns[event_] < time_ns; ++event_) {
      const uint64_t address = memory.address[event_];
      if (memory.kind[event_] == MemoryEventKind::kFree) block_at_.erase(address);
      if (memory.kind[event_] != MemoryEventKind::kAlloc) continue;
      const size_t block = new_block(address, memory.bytes[event_]);
      const auto maker = makers_.find(memory.lane[event_]);
      if (maker == makers_.end() || memory.time_ns[event_] >= host_.end_ns(maker->second.op)) continue;
      Maker& open = maker->second;
      blocks_[block].value = mix_hash(open.value, ++open.made);
      blocks_[block].maker = open.op;
      if (open.candidate != SIZE_MAX) candidates_[open.candidate].made.push_back(block);
    }
  }

  size_t block_of(uint64_t storage) {
    const auto found = block_at_.find(storage);
    return found != block_at_.end() ? found->second : new_block(storage, 0);
  }

  struct Extent {
    uint64_t shape = 1;
    int64_t elements = 1;
    int64_t bytes = 0;  // 0: not known
  };
  static Extent extent_of(const StorageInput& input, const std::vector<Dims>& dims) {
    Extent extent;
    if (input.in_list || input.place >= dims.size()) return extent;
    for (const int64_t size : dims[input.place]) {
      extent.elements = product_of_sizes(extent.elements, size);
      extent.shape = mix_hash(extent.shape, static_cast<uint64_t>(size));
    }
    extent.bytes = product_of_sizes(extent.elements, bytes_of_type(input.type));
    return extent;
  }

  // A number that Python multiplies with becomes a tensor, whose value no trace has. What is known is where it stands:
  // after an operator that computed what it had computed when the number stood there before.
  static bool is_plain_number(const StorageInput& input, const std::vector<Dims>& dims) {
    return input.on_cpu && !input.in_list && input.place < dims.size() && dims[input.place].empty() &&
           (input.type == "double" || input.type == "long int" || input.type == "bool");
  }

  // A tensor that fills its memory shows all of it. Others are known by the view that was made last before they were
  // first seen, and by how many were seen since (a split makes several). Where a tensor was, another one may be later:
  // one that a view made since, of another tensor.
  uint64_t key_of(const StorageInput& input, size_t block, const Extent& extent) {
    const auto [found, is_new] = views_.try_emplace(input.tensor);
    View& view = found->second;
    Block& of = blocks_[block];
    const bool is_same = !is_new && view.block == block && view.shape == extent.shape &&
                         std::none_of(of.made.begin() + static_cast<std::ptrdiff_t>(view.seen), of.made.end(),
                                      [&](const ViewMade& made) {
                                        return made.from != input.tensor && made.elements >= extent.elements;
                                      });
    // The caching allocator rounds up; a CPU's does not, and a number of a short vector fills no 512 bytes.
    const int64_t rounding = input.on_cpu ? 1 : 512;
    const int64_t bytes = extent.bytes;
    const bool fills = of.bytes > 0 && bytes > 0 && bytes <= of.bytes && of.bytes - bytes < rounding;
    if (!is_same) {
      view = {.block = block,
              .key = fills ? extent.shape : mix_hash(mix_hash(extent.shape, of.last_view), ++of.views),
              .shape = extent.shape};
    }
    view.seen = of.made.size();
    return view.key;
  }

  void look_at(Row op, bool judged) {
    const Kind& what = kind(op);
    const Row detail = model_.op_detail(op);
    const auto text = [&](StringId id) { return id == kNoString ? std::string_view() : model_.text(id); };
    std::vector<StorageInput> inputs;
    if (detail != kNoRow) inputs = parse_storages(text(model_.op_details.tensors[detail]));
    const bool in_backward = phases_.host[op] == Phase::kBackward;
    uint64_t value = static_cast<uint32_t>(host_.name[op]);
    if (detail != kNoRow) {
      const OpDetails& details = model_.op_details;
      for (const StringId id : {details.overload[detail], details.input_dims[detail], details.input_types[detail],
                                details.input_strides[detail], details.concrete_inputs[detail]}) {
        value = mix_hash(value, static_cast<uint32_t>(id));
      }
    }
    std::vector<Dims> dims;
    if (detail != kNoRow && !inputs.empty()) dims = parse_input_dims(text(model_.op_details.input_dims[detail]));
    std::vector<size_t> blocks;
    uint64_t& last = last_values_[host_.lane[op]];
    for (const StorageInput& input : inputs) {
      if (is_plain_number(input, dims)) {
        value = mix_hash(value, last);
        continue;
      }
      const size_t block = block_of(input.storage);
      blocks.push_back(block);
      value = mix_hash(value, mix_hash(blocks_[block].value, key_of(input, block, extent_of(input, dims))));
    }
    if (what.new_value || in_backward) value = mix_hash(value, ++fresh_);
    if (what.view && !blocks.empty()) {
      const bool is_known = !inputs.empty() && !inputs[0].in_list && !makes_larger(host_.name[op]);
      Block& of = blocks_[blocks[0]];
      of.last_view = value;
      of.views = 0;
      of.made.push_back({inputs[0].tensor, is_known ? extent_of(inputs[0], dims).elements : INT64_MAX});
      makers_[host_.lane[op]] = {.op = op, .value = value};  // some copy where there is no such view
      return;
    }
    last = value;
    const bool has_out = detail != kNoRow && contains(text(model_.op_details.overload[detail]), "out");
    if (what.writes_first || what.writes_all || has_out) {
      for (size_t i = 0; i < blocks.size() && (what.writes_all || has_out || i == 0); ++i) {
        blocks_[blocks[i]].value = mix_hash(value, i);
        blocks_[blocks[i]].written = true;
      }
      makers_[host_.lane[op]] = {.op = op, .value = mix_hash(value, ++fresh_)};
      return;
    }
    Maker maker{.op = op, .value = value};
    const Phase phase = phases_.host[op];
    const bool counts = !what.new_value && !in_backward && !inputs.empty() && phase != Phase::kOptimizer &&
                        phase != Phase::kData && phase != Phase::kTransfer;
    if (counts) {
      const auto [found, is_first] = now_.try_emplace(value, op);
      const auto last_step = is_first ? before_.find(value) : before_.end();
      if (judged && (!is_first || last_step != before_.end())) {
        maker.candidate = candidates_.size();
        candidates_.push_back({.same = {.op = op, .first = is_first ? last_step->second : found->second},
                               .in_step = !is_first,
                               .made = {}});
        see_sources(inputs, candidates_.back().same);
      }
    }
    makers_[host_.lane[op]] = maker;
  }

  void see_sources(const std::vector<StorageInput>& inputs, SameValue& same) const {
    for (const StorageInput& input : inputs) {
      const auto found = block_at_.find(input.storage);
      if (found == block_at_.end()) continue;  // a number
      const Block& block = blocks_[found->second];
      if (block.maker != kNoRow) same.makers.push_back(block.maker);
      if (block.bytes == 0) same.from_before.push_back(input.place);
    }
  }

  struct Maker {
    Row op = kNoRow;
    uint64_t value = 0;
    uint64_t made = 0;
    size_t candidate = SIZE_MAX;
  };

  const Model& model_;
  const HostSlices& host_;
  const Phases& phases_;
  const StepList& steps_;
  std::vector<Kind> kinds_;  // by name
  std::vector<bool> known_;
  std::vector<Block> blocks_;
  std::unordered_map<uint64_t, size_t> block_at_;     // by address
  std::unordered_map<uint64_t, View> views_;          // by tensor
  std::unordered_map<LaneId, Maker> makers_;          // the last op of each lane
  std::unordered_map<LaneId, uint64_t> last_values_;  // what it computed
  std::unordered_map<uint64_t, Row> now_;             // first calls of this step, by value
  std::unordered_map<uint64_t, Row> before_;          // and of the step before
  std::vector<Candidate> candidates_;
  uint64_t fresh_ = 0;
  size_t event_ = 0;
};

}  // namespace

SameValues find_same_values(const StudiedTrace& trace) {
  return Numbering(trace.model(), trace.get<find_phases>(), trace.get<host_steps>().steps).run();
}

}  // namespace firelane::analyze
