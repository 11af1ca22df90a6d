// Activations that the backward pass recomputes: checkpointing, and whether there is enough memory to keep them.
//
// A backward node that unpacks what a checkpoint did not save runs the forward function again. So operators of the
// forward pass appear, with the same shapes and in the same order, inside a backward node.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/memory/memory.h"
#include "analyze/steps/phases.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/host_role.h"

namespace firelane::advise {

namespace {

constexpr size_t kInARow = 3;  // operators with the same shapes
constexpr size_t kInARowWithoutShapes = 6;
constexpr double kTightShare = 0.85;  // of the device's memory: what comes above it leaves no room to vary

bool is_node(std::string_view name) { return role_of(name) == HostRole::kBackwardNode || contains(name, "Backward"); }

// Operators that a backward node calls itself, in order, or that no other calls: what programs write, not what
// operators are made of.
struct Called {
  Row op = kNoRow;
  Row node = kNoRow;     // outermost
  uint64_t what = 0;     // name and shapes
  int64_t until_ns = 0;  // with the way out of the function, if it is the last one that is computed again
};

class Recomputed {
 public:
  explicit Recomputed(const Context& context)
      : context_(context), model_(context.model), host_(context.model.host_slices) {
    const auto& phases = context.trace.get<analyze::find_phases>();
    if (!phases.has_backward) return;
    for (size_t lane = 0; lane < model_.lanes.size(); ++lane) look_at(lane);
    const size_t length = has_shapes_ ? kInARow : kInARowWithoutShapes;
    std::unordered_set<uint64_t> seen;
    for (size_t i = 0; i + length <= forward_.size(); ++i) seen.insert(hash_of(forward_, i, length));
    std::vector<bool> again(backward_.size());
    for (size_t i = 0; i + length <= backward_.size(); ++i) {
      if (backward_[i].node != backward_[i + length - 1].node || !seen.contains(hash_of(backward_, i, length)))
        continue;
      std::fill_n(again.begin() + static_cast<std::ptrdiff_t>(i), length, true);
    }
    std::unordered_set<uint64_t> in_backward;
    for (size_t i = 0; i < backward_.size(); ++i) {
      if (!again[i]) continue;
      ops_.push_back(backward_[i]);
      ops_.back().until_ns = until_ns(i, again);
      in_backward.insert(backward_[i].what);
    }
    for (const Called& each : forward_) {
      if (in_backward.contains(each.what)) first_.push_back(each.op);
    }
  }

  const std::vector<Called>& ops() const { return ops_; }
  // Operators of the forward pass that are recomputed.
  const std::vector<Row>& first() const { return first_; }
  bool has_shapes() const { return has_shapes_; }

 private:
  static uint64_t hash_of(const std::vector<Called>& ops, size_t first, size_t length) {
    uint64_t hash = 0;
    for (size_t i = first; i < first + length; ++i) hash = mix_hash(hash, ops[i].what);
    return hash;
  }

  // A checkpoint leaves the function by an exception once it has what was asked for: then the node's own work begins.
  int64_t until_ns(size_t at, const std::vector<bool>& again) const {
    const Row op = backward_[at].op;
    const bool is_last = at + 1 == backward_.size() || !again[at + 1] || backward_[at + 1].node != backward_[at].node;
    if (!is_last) return host_.end_ns(op);
    const Row parent = host_.parent[op];
    for (Row row = op + 1; row < host_.size() && host_.lane[row] == host_.lane[op]; ++row) {
      if (host_.start_ns[row] >= host_.end_ns(parent)) break;
      if (host_.parent[row] == parent) return host_.start_ns[row];
    }
    return host_.end_ns(op);
  }

  void look_at(size_t lane) {
    for (Row row = model_.lanes.host_begin[lane]; row < model_.lanes.host_end[lane]; ++row) {
      if (host_.kind[row] != HostKind::kOp || !context_.in_window(host_.start_ns[row])) continue;
      const std::string_view name = model_.text(host_.name[row]);
      if (is_node(name) || analyze::is_view_op(name) || name == "aten::detach") continue;
      Row outer = host_.parent[row];
      while (outer != kNoRow && host_.kind[outer] != HostKind::kOp) outer = host_.parent[outer];
      if (outer != kNoRow && !is_node(model_.text(host_.name[outer]))) continue;
      const Row detail = model_.op_detail(row);
      const StringId dims = detail == kNoRow ? kNoString : model_.op_details.input_dims[detail];
      has_shapes_ = has_shapes_ || dims != kNoString;
      Called called{.op = row, .what = mix_hash(static_cast<uint32_t>(host_.name[row]), static_cast<uint32_t>(dims))};
      // Python's functions may stand between, where they were recorded.
      for (; outer != kNoRow; outer = host_.parent[outer]) {
        if (host_.kind[outer] == HostKind::kOp) called.node = outer;
      }
      const bool in_backward = called.node != kNoRow;
      (in_backward ? backward_ : forward_).push_back(called);
    }
  }

  const Context& context_;
  const Model& model_;
  const HostSlices& host_;
  bool has_shapes_ = false;
  std::vector<Called> forward_, backward_, ops_;
  std::vector<Row> first_;
};

// Without the older kind (use_reentrant=True), each tensor that an operator saves for its backward goes through
// functions in Python, and again when its node takes it out. What that takes for one operator, at worst and at best for
// the gain.
constexpr int64_t kLeastHooksNs = 10'000;
constexpr int64_t kMostHooksNs = 50'000;
constexpr double kKeptOfHooked = 0.3;  // of an operator: it is still called

bool saves_tensors(std::string_view name) {
  for (const std::string_view part : {"add", "Add", "View", "TBackward", "Permute", "Transpose", "Unbind", "ToCopy",
                                      "Expand", "Reshape", "Split", "Slice", "Cat", "sub", "aten::to", "cat", "Sum"}) {
    if (contains(name, part) && !contains(name, "addmm") && !contains(name, "Addmm")) return false;
  }
  return true;
}

void add_hooks(const Context& context, const Recomputed& recomputed, Evidence& evidence) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const auto number_of = [&](Row op) {
    const Row detail = model.op_detail(op);
    const int64_t number = detail == kNoRow ? kNoNumber : model.op_details.sequence_number[detail];
    return number == kNoNumber ? -1 : number;
  };
  const auto add = [&](Row op) {
    if (!saves_tensors(model.text(host.name[op]))) return;
    const auto took = static_cast<double>(std::max<int64_t>(1, host.duration_ns[op]));
    const auto kept = [&](int64_t ns) { return std::max(kKeptOfHooked, 1 - static_cast<double>(ns) / took); };
    evidence.add_host(op, kept(kLeastHooksNs), kept(kMostHooksNs));
  };
  std::unordered_set<Row> nodes;
  for (const Called& each : recomputed.ops()) {
    if (contains(model.text(host.name[each.node]), "CheckpointFunctionBackward")) return;  // the older kind
    nodes.insert(each.node);
  }
  std::unordered_set<int64_t> numbers;
  for (const Row op : recomputed.first()) {
    add(op);
    for (Row row = op; row < host.size() && host.lane[row] == host.lane[op] && host.start_ns[row] < host.end_ns(op);
         ++row) {
      if (host.kind[row] == HostKind::kOp && number_of(row) >= 0) numbers.insert(number_of(row));
    }
  }
  for (Row row = 0; row < host.size(); ++row) {
    const bool is_one = is_outermost_op(host, row) && is_node(model.text(host.name[row])) && !nodes.contains(row);
    if (is_one && context.in_window(host.start_ns[row]) && numbers.contains(number_of(row))) add(row);
  }
}

// What the forward pass would keep: memory that the operators allocate now in the backward pass, per step, and that
// outlives them.
struct Room {
  int64_t kept_bytes = 0;
  int64_t free_bytes = kNoNumber;  // at the peak; kNoNumber: not known
  int64_t capacity_bytes = kNoNumber;
  std::string device;
};

Room room_of(const Context& context, const std::vector<Called>& ops) {
  Room room;
  if (context.model.memory_events.size() == 0) return room;
  std::unordered_set<Row> nodes;
  for (const Called& each : ops) nodes.insert(each.node);
  const HostSlices& host = context.model.host_slices;
  for (const analyze::DeviceMemory& device : context.trace.get<analyze::memory_report>().devices) {
    if ((device.device_type != 0) != context.has_device_work) continue;
    int64_t kept = 0;
    for (const analyze::MemoryBlock& block : device.blocks) {
      if (block.op == kNoRow || !nodes.contains(block.op) || !context.in_window(block.start_ns)) continue;
      const auto after = std::partition_point(ops.begin(), ops.end(), [&](const Called& each) {
        return host.lane[each.op] < host.lane[block.op] ||
               (host.lane[each.op] == host.lane[block.op] && host.start_ns[each.op] <= block.start_ns);
      });
      if (after == ops.begin()) continue;
      const Row op = std::prev(after)->op;
      if (block.start_ns < host.end_ns(op) && block.end_ns > host.end_ns(op)) kept += block.bytes;
    }
    if (kept <= room.kept_bytes) continue;
    room = {.kept_bytes = kept, .capacity_bytes = device.capacity_bytes, .device = device.name};
    const int64_t used = std::max(device.peak.allocated_bytes, device.peak_reserved_bytes);
    if (device.capacity_bytes > 0) room.free_bytes = device.capacity_bytes - used;
  }
  room.kept_bytes /= std::max<int64_t>(1, context.step_count);
  return room;
}

void say_what_memory_allows(const Room& room, Finding& finding) {
  finding.try_code = "y = layer(x)  # instead of checkpoint(layer, x)";
  if (room.free_bytes == kNoNumber) {
    finding.try_text =
        "if memory allows it, checkpoint fewer layers, or none" +
        (room.kept_bytes == 0 ? std::string()
                              : ": without it a step keeps about " + short_bytes(room.kept_bytes) + " more");
    finding.confirm_by = "leave it out, and watch the peak of memory";
    return;
  }
  const auto spare =
      room.free_bytes - static_cast<int64_t>((1 - kTightShare) * static_cast<double>(room.capacity_bytes));
  if (room.kept_bytes <= spare) {
    finding.try_text = "there is memory to keep them: about " + short_bytes(room.kept_bytes) + " more, and " +
                       short_bytes(room.free_bytes) + " of " + room.device + " are free at the peak";
    finding.confirm_by = "leave it out, and compare the peak of memory";
    return;
  }
  // Some layers may still keep theirs: that part of the gain.
  const double part =
      std::max(0.0, static_cast<double>(spare) / static_cast<double>(std::max<int64_t>(1, room.kept_bytes)));
  finding.gain.low_ns = static_cast<int64_t>(part * static_cast<double>(finding.gain.low_ns));
  finding.gain.high_ns = static_cast<int64_t>(part * static_cast<double>(finding.gain.high_ns));
  finding.confidence = Confidence::kLow;
  finding.try_text = "checkpoint fewer layers: to keep all would take about " + short_bytes(room.kept_bytes) +
                     " more, and " + short_bytes(room.free_bytes) + " of " + room.device + " are free at the peak";
  finding.try_code = "y = checkpoint(layer, x) if i % 2 else layer(x)  # every second layer";
  finding.confirm_by = "leave it out in one layer, and compare the peak of memory";
}

std::vector<Finding> find_recomputed(const Context& context) {
  if (context.study == nullptr) return {};
  const Recomputed recomputed(context);
  const std::vector<Called>& ops = recomputed.ops();
  if (ops.empty()) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  Evidence evidence(context);
  std::vector<Row> rows;
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool goes_on = i > 0 && ops[i - 1].node == ops[i].node;
    // The way from Python to it; before the first one, that into the function, out of the node.
    const int64_t from_ns = goes_on ? host.end_ns(ops[i - 1].op) : host.start_ns[ops[i].node];
    evidence.add_stretch(host.lane[ops[i].op], from_ns, host.start_ns[ops[i].op]);
    rows.push_back(ops[i].op);
    if (context.has_device_work) {
      evidence.add_host(ops[i].op, 0);
    } else {
      evidence.add_call(ops[i].op, 0, 0);
    }
    evidence.add_stretch(host.lane[ops[i].op], host.end_ns(ops[i].op), ops[i].until_ns);
  }
  add_hooks(context, recomputed, evidence);
  if (context.has_device_work) {
    for (const Row work : launched_during(model, rows)) evidence.add_device(work, 0, 0);
  }
  if (evidence.empty()) return {};
  Finding finding{
      .id = "recomputed-activations", .confidence = Confidence::kMedium, .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  const Room room = room_of(context, ops);
  say_what_memory_allows(room, finding);
  if (finding.confidence == Confidence::kLow) finding.precedence = Precedence::kByGain;
  if (!recomputed.has_shapes()) finding.confidence = Confidence::kLow;
  finding.events = static_cast<int64_t>(ops.size());
  std::unordered_set<Row> nodes;
  for (const Called& each : ops) nodes.insert(each.node);
  finding.title = "the backward pass recomputes activations (checkpointing) of " +
                  counted(context.study->per_step(static_cast<int64_t>(nodes.size())), "part", "parts") +
                  " of the model: " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> recomputed_rules() {
  return {
      {"recomputed-activations", "waste", 0.04, true,
       "torch.utils.checkpoint keeps the inputs of a part of the model instead of its activations, and repeats its\n"
       "forward in the backward pass. That saves memory and costs up to a third of a step. Where enough memory is\n"
       "free, that time is wasted.\n\n"
       "This finding covers operators inside backward nodes that also occur in the forward pass: at least three in\n"
       "a row, with the same names and shapes (six where shapes were not recorded). The gain is a replay without\n"
       "them, and without 10 to 50 us for each operator whose saved tensors go through Python\n"
       "(use_reentrant=False). The memory that they allocate and keep is what the forward pass would have to keep;\n"
       "it is compared with the free memory of the device at the peak, less a reserve of 15%. If it does not fit,\n"
       "the gain covers only the part that does.\n\n"
       "What to do: checkpoint fewer layers (those with the largest activations and the least work), or none.\n\n"
       "When not: memory is what limits the batch, and a larger batch gains more than this costs.",
       find_recomputed},
  };
}

}  // namespace firelane::advise
