#include "analyze/memory/memory.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analyze/common/user_line.h"
#include "analyze/device/kernel_traits.h"
#include "analyze/steps/find_steps.h"
#include "base/check.h"
#include "base/text.h"

namespace firelane::analyze {

namespace {

constexpr size_t kMostSpikes = 10;
constexpr double kSpikeShare = 0.05;  // of the peak
constexpr int64_t kLeastGrowthBytes = 4096;

struct Allocation {
  Row event = kNoRow;
  Row free_event = kNoRow;  // kNoRow: not in the trace
  int64_t bytes = 0;
  MemoryCategory category = MemoryCategory::kUnknown;
  Row op = kNoRow;      // outermost op
  Row module = kNoRow;  // innermost module call
};

bool uses_workspace(std::string_view op) {
  return op.find("mm") != std::string_view::npos || op.find("conv") != std::string_view::npos ||
         op.find("attention") != std::string_view::npos || op.find("linear") != std::string_view::npos;
}

// These make one tensor, first, and then call cuBLAS, whose workspace torch keeps for the thread and the stream.
bool is_matrix_product(std::string_view op) {
  constexpr std::string_view kNames[] = {
      "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation", "aten::_scaled_mm"};
  return std::find(std::begin(kNames), std::end(kNames), op) != std::end(kNames);
}

// For a memory snapshot's allocation; frames as import/dumps/frames.cc writes them.
Phase phase_in_stack(std::string_view stack) {
  if (contains(stack, "autograd: ") || contains(stack, "autograd engine")) return Phase::kBackward;
  if (contains(stack, "torch/optim/")) return Phase::kOptimizer;
  if (contains(stack, "torch/utils/data/")) return Phase::kData;
  if (contains(stack, "torch/nn/modules/module.py")) return Phase::kForward;
  return Phase::kNone;
}

bool is_uncertain(MemoryCategory category) {
  return category == MemoryCategory::kParameters || category == MemoryCategory::kGradients ||
         category == MemoryCategory::kOptimizerState || category == MemoryCategory::kBeforeRecording ||
         category == MemoryCategory::kUnknown;
}

// Memory of one device, one event after another.
class DeviceReader {
 public:
  DeviceReader(const Model& model, const Phases& phases, const Steps& steps, const std::vector<Row>& events,
               MemoryReport& report)
      : model_(model), host_(model.host_slices), phases_(phases), steps_(steps), rows_(events), report_(report) {}

  DeviceMemory run() {
    const MemoryEvents& events = model_.memory_events;
    out_.device_type = events.device_type[rows_.front()];
    out_.device = events.device[rows_.front()];
    name_device();
    pair_events();
    read_curve();
    find_optimizer_starts();
    for (Allocation& allocation : allocations_) classify(allocation);
    keep_blocks();
    read_peak();
    find_spikes();
    read_steps();
    find_growth();
    return std::move(out_);
  }

 private:
  void name_device() {
    out_.name = out_.device_type == 0 ? "CPU" : "device " + std::to_string(out_.device);
    if (out_.device_type == 0) return;
    for (const DeviceProperties& each : model_.info.devices) {
      if (each.id != out_.device) continue;
      out_.name = each.name;
      out_.capacity_bytes = each.total_memory_bytes;
    }
  }

  void pair_events() {
    const MemoryEvents& events = model_.memory_events;
    std::unordered_map<uint64_t, size_t> alive;
    for (const Row event : rows_) {
      if (events.kind[event] == MemoryEventKind::kOutOfMemory) {
        if (out_.out_of_memory++ == 0) out_.first_out_of_memory_ns = events.time_ns[event];
      } else if (events.bytes[event] >= 0) {
        ++out_.allocations;
        alive[events.address[event]] = allocations_.size();
        allocations_.push_back({.event = event, .bytes = events.bytes[event]});
      } else {
        ++out_.frees;
        const auto found = alive.find(events.address[event]);
        if (found == alive.end()) {
          ++report_.frees_before_recording;
          report_.category[event] = MemoryCategory::kBeforeRecording;
          continue;
        }
        allocations_[found->second].free_event = event;
        alive.erase(found);
      }
    }
  }

  // What was allocated before the first event, where the allocator's state says it.
  int64_t known_start() const {
    for (const DeviceAllocator& each : report_.allocators) {
      if (each.device_type == out_.device_type && each.device == out_.device) return each.curve.front().allocated_bytes;
    }
    return 0;
  }

  // The allocator's own totals where given, else a running sum from there.
  void read_curve() {
    const MemoryEvents& events = model_.memory_events;
    int64_t sum = known_start();
    bool first = true;
    for (const Row event : rows_) {
      if (events.kind[event] == MemoryEventKind::kOutOfMemory) continue;
      const int64_t total = events.total_allocated_bytes[event];
      const bool has_total = total != kNoNumber;
      sum = has_total ? total : sum + events.bytes[event];
      if (first) out_.start_bytes = sum - events.bytes[event];
      first = false;
      out_.curve.push_back({events.time_ns[event], sum,
                            events.total_reserved_bytes[event] > 0 ? events.total_reserved_bytes[event] : kNoNumber});
      if (out_.curve.back().allocated_bytes > out_.peak.allocated_bytes || out_.curve.size() == 1) {
        out_.peak = out_.curve.back();
        peak_event_ = event;
      }
      out_.peak_reserved_bytes = std::max(out_.peak_reserved_bytes, out_.curve.back().reserved_bytes);
    }
    if (!out_.curve.empty()) out_.end_bytes = out_.curve.back().allocated_bytes;
  }

  void find_optimizer_starts() {
    for (Row row = 0; row < host_.size(); ++row) {
      const bool is_step = host_.kind[row] == HostKind::kAnnotation && host_.role[row] == HostRole::kOptimizerStep;
      if (is_step) optimizer_starts_.push_back(host_.start_ns[row]);
    }
    std::sort(optimizer_starts_.begin(), optimizer_starts_.end());
  }

  Row outermost_op(Row slice) const {
    Row found = kNoRow;
    for (Row row = slice; row != kNoRow; row = host_.parent[row]) {
      if (host_.kind[row] == HostKind::kOp) found = row;
    }
    return found;
  }
  Row innermost_op(Row slice) const {
    Row row = slice;
    while (row != kNoRow && host_.kind[row] != HostKind::kOp) row = host_.parent[row];
    return row;
  }
  // REQUIRES: asked once for each allocation, in the order of time.
  bool is_kept_workspace(Row slice, bool freed) {
    const Row op = out_.device_type != 0 ? innermost_op(slice) : kNoRow;
    if (op == kNoRow || !is_matrix_product(model_.text(host_.name[op]))) return false;
    const bool is_output = products_.insert(op).second;
    return !is_output && !freed;
  }
  Row innermost_module(Row slice) const {
    for (Row row = slice; row != kNoRow; row = host_.parent[row]) {
      if (is_module_slice(model_, row)) return row;
    }
    return kNoRow;
  }
  Phase phase_at(Row event) {
    return phase_of(event,
                    open_slice_at(model_, model_.memory_events.lane[event], model_.memory_events.time_ns[event]));
  }
  Phase phase_of(Row event, Row slice) {
    if (slice != kNoRow && phases_.host[slice] != Phase::kNone) return phases_.host[slice];
    const StringId stack = model_.memory_events.stack[event];
    if (stack == kNoString) return Phase::kNone;
    const auto [known, is_new] = phase_of_stack_.try_emplace(static_cast<uint32_t>(stack), Phase::kNone);
    if (is_new) known->second = phase_in_stack(model_.text(stack));
    return known->second;
  }

  void classify(Allocation& allocation) {
    const MemoryEvents& events = model_.memory_events;
    const int64_t time_ns = events.time_ns[allocation.event];
    const Row slice = open_slice_at(model_, events.lane[allocation.event], time_ns);
    if (slice != kNoRow) {
      allocation.op = outermost_op(slice);
      allocation.module = innermost_module(slice);
    }
    const Phase phase = phase_of(allocation.event, slice);
    const bool freed = allocation.free_event != kNoRow;
    const int64_t free_ns = freed ? events.time_ns[allocation.free_event] : INT64_MAX;
    const bool freed_in_op = allocation.op != kNoRow && free_ns <= host_.end_ns(allocation.op) && freed &&
                             events.lane[allocation.free_event] == events.lane[allocation.event];
    // What a step makes and keeps is no parameter: an activation that something still holds.
    const bool before_training = model_.steps.size() > 0
                                     ? time_ns < model_.steps.start_ns.front()
                                     : (steps_.size() > 0 && time_ns < steps_.start_ns.front()) ||
                                           (optimizer_starts_.size() > 1 && time_ns < optimizer_starts_.front());
    allocation.category = is_kept_workspace(slice, freed)
                              ? MemoryCategory::kWorkspace
                              : category_of(allocation, phase, freed, freed_in_op, before_training);
  }

  MemoryCategory category_of(const Allocation& allocation, Phase phase, bool freed, bool freed_in_op,
                             bool before_training) {
    if (phase == Phase::kData || phase == Phase::kTransfer) {
      return before_training && !freed ? MemoryCategory::kParameters : MemoryCategory::kInputs;
    }
    if (freed_in_op) {
      return uses_workspace(model_.text(host_.name[allocation.op])) ? MemoryCategory::kWorkspace
                                                                    : MemoryCategory::kTemporaries;
    }
    const Phase free_phase = freed ? phase_at(allocation.free_event) : Phase::kNone;
    switch (phase) {
      case Phase::kForward:
        return before_training && !freed ? MemoryCategory::kParameters : MemoryCategory::kActivations;
      case Phase::kBackward:
        return freed && free_phase == Phase::kBackward ? MemoryCategory::kTemporaries : MemoryCategory::kGradients;
      case Phase::kOptimizer:
        return freed && free_phase == Phase::kOptimizer ? MemoryCategory::kTemporaries
                                                        : MemoryCategory::kOptimizerState;
      default: return before_training && !freed ? MemoryCategory::kParameters : MemoryCategory::kUnknown;
    }
  }

  // Every allocation with what it is for, and the same for each point of the curve.
  void keep_blocks() {
    const MemoryEvents& events = model_.memory_events;
    for (const Allocation& allocation : allocations_) {
      const bool freed = allocation.free_event != kNoRow;
      report_.category[allocation.event] = allocation.category;
      if (freed) report_.category[allocation.free_event] = allocation.category;
      out_.blocks.push_back({.start_ns = events.time_ns[allocation.event],
                             .end_ns = freed ? events.time_ns[allocation.free_event] : INT64_MAX,
                             .address = events.address[allocation.event],
                             .bytes = allocation.bytes,
                             .category = allocation.category,
                             .event = allocation.event,
                             .op = allocation.op,
                             .module = allocation.module});
    }
    size_t at = 0;
    for (const Row event : rows_) {
      if (events.kind[event] == MemoryEventKind::kOutOfMemory) continue;
      MemoryPoint& point = out_.curve[at++];
      point.change_bytes = events.bytes[event];
      point.category = report_.category[event];
    }
  }

  MemoryOwner owner_of(const Allocation& a) const {
    return analyze::owner_of(model_, {.category = a.category, .event = a.event, .op = a.op, .module = a.module});
  }

  using OwnerKey = std::tuple<std::string, std::string, std::string, MemoryCategory>;
  static OwnerKey key_of(const MemoryOwner& owner) { return {owner.op, owner.module, owner.place, owner.category}; }
  static std::vector<MemoryOwner> sorted(const std::map<OwnerKey, MemoryOwner>& owners) {
    std::vector<MemoryOwner> out;
    for (const auto& [key, owner] : owners) out.push_back(owner);
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return out;
  }

  void read_peak() {
    if (peak_event_ == kNoRow) return;
    std::map<OwnerKey, MemoryOwner> owners;
    int64_t known = 0;
    for (const Allocation& allocation : allocations_) {
      if (allocation.event > peak_event_) break;
      if (allocation.free_event != kNoRow && allocation.free_event <= peak_event_) continue;
      known += allocation.bytes;
      out_.at_peak[static_cast<size_t>(allocation.category)] += allocation.bytes;
      MemoryOwner owner = owner_of(allocation);
      MemoryOwner& sum = owners.try_emplace(key_of(owner), owner).first->second;
      sum.bytes += allocation.bytes;
      ++sum.allocations;
    }
    // What was there before; less than nothing when the events lost some frees.
    out_.at_peak[static_cast<size_t>(MemoryCategory::kBeforeRecording)] = out_.peak.allocated_bytes - known;
    for (size_t i = 0; i < kMemoryCategoryCount; ++i) {
      if (is_uncertain(static_cast<MemoryCategory>(i))) out_.uncertain_bytes += out_.at_peak[i];
    }
    out_.owners = sorted(owners);
    int64_t sum = 0;
    for (const int64_t bytes : out_.at_peak) sum += bytes;
    FL_CHECK(sum == out_.peak.allocated_bytes, "memory_report: categories must add up to the peak");
  }

  // Allocated after the last change at or before that time.
  int64_t allocated_at(int64_t time_ns) const {
    const auto after = std::upper_bound(out_.curve.begin(), out_.curve.end(), time_ns,
                                        [](int64_t time, const MemoryPoint& point) { return time < point.time_ns; });
    return after == out_.curve.begin() ? out_.start_bytes : std::prev(after)->allocated_bytes;
  }

  void find_spikes() {
    std::unordered_map<Row, MemoryPoint> highest;  // per outermost op
    size_t at = 0;
    for (const Row event : rows_) {
      if (model_.memory_events.kind[event] == MemoryEventKind::kOutOfMemory) continue;
      const MemoryPoint& point = out_.curve[at++];
      if (model_.memory_events.bytes[event] <= 0) continue;
      const Row slice = open_slice_at(model_, model_.memory_events.lane[event], point.time_ns);
      const Row op = slice == kNoRow ? kNoRow : outermost_op(slice);
      if (op == kNoRow) continue;
      MemoryPoint& best = highest.try_emplace(op, point).first->second;
      if (point.allocated_bytes > best.allocated_bytes) best = point;
    }
    for (const auto& [op, point] : highest) {
      const int64_t around = std::max(allocated_at(host_.start_ns[op] - 1), allocated_at(host_.end_ns(op)));
      const int64_t extra = point.allocated_bytes - around;
      if (static_cast<double>(extra) < kSpikeShare * static_cast<double>(out_.peak.allocated_bytes) || extra <= 0)
        continue;
      out_.spikes.push_back({.op = op, .time_ns = point.time_ns, .extra_bytes = extra});
    }
    std::sort(out_.spikes.begin(), out_.spikes.end(), [](const MemorySpike& a, const MemorySpike& b) {
      return a.extra_bytes != b.extra_bytes ? a.extra_bytes > b.extra_bytes : a.time_ns < b.time_ns;
    });
    std::unordered_map<uint32_t, size_t> worst_of;  // by name
    std::vector<MemorySpike> worst;
    for (const MemorySpike& spike : out_.spikes) {
      const auto [found, is_new] = worst_of.try_emplace(static_cast<uint32_t>(host_.name[spike.op]), worst.size());
      if (is_new)
        worst.push_back(spike);
      else
        ++worst[found->second].times;
    }
    out_.spikes = std::move(worst);
    if (out_.spikes.size() > kMostSpikes) out_.spikes.resize(kMostSpikes);
  }

  void read_steps() {
    const Steps& steps = steps_;
    for (size_t i = 0; i < steps.size(); ++i) {
      const int64_t end_ns = steps.start_ns[i] + steps.duration_ns[i];
      StepMemory row{
          .step = steps.number[i], .peak_bytes = allocated_at(steps.start_ns[i]), .end_bytes = allocated_at(end_ns)};
      auto point = std::lower_bound(out_.curve.begin(), out_.curve.end(), steps.start_ns[i],
                                    [](const MemoryPoint& each, int64_t time) { return each.time_ns < time; });
      for (; point != out_.curve.end() && point->time_ns < end_ns; ++point) {
        row.peak_bytes = std::max(row.peak_bytes, point->allocated_bytes);
        row.reserved_bytes = std::max(row.reserved_bytes, point->reserved_bytes);
      }
      out_.steps.push_back(row);
    }
    if (out_.device_type == 0 || steps.size() == 0) return;
    for (Row row = 0; row < host_.size(); ++row) {
      if (!is_call(host_.kind[row])) continue;
      if (!is_allocator_call(model_.text(host_.name[row]))) continue;
      const size_t step = step_at(host_.start_ns[row]);
      if (step == SIZE_MAX) continue;
      ++out_.steps[step].allocator_calls;
      out_.steps[step].allocator_ns += host_.duration_ns[row];
    }
  }

  size_t step_at(int64_t time_ns) const {
    const Steps& steps = steps_;
    const auto after = std::upper_bound(steps.start_ns.begin(), steps.start_ns.end(), time_ns) - steps.start_ns.begin();
    if (after == 0) return SIZE_MAX;
    const auto step = static_cast<size_t>(after - 1);
    return time_ns < steps.start_ns[step] + steps.duration_ns[step] ? step : SIZE_MAX;
  }

  // Memory that every step but the first leaves behind. The first makes optimizer states, caches and workspaces.
  void find_growth() {
    if (out_.steps.size() < 3) return;
    int64_t least = INT64_MAX;
    for (size_t i = 1; i < out_.steps.size(); ++i) {
      least = std::min(least, out_.steps[i].end_bytes - out_.steps[i - 1].end_bytes);
    }
    if (least < kLeastGrowthBytes) return;
    out_.growth_per_step_bytes = least;
    struct PerStep {
      MemoryOwner owner;
      std::vector<bool> in_step;
    };
    std::map<OwnerKey, PerStep> owners;
    for (const Allocation& allocation : allocations_) {
      if (allocation.free_event != kNoRow) continue;
      const size_t step = step_at(model_.memory_events.time_ns[allocation.event]);
      if (step == SIZE_MAX || step == 0) continue;
      MemoryOwner owner = owner_of(allocation);
      PerStep& sum = owners.try_emplace(key_of(owner), PerStep{owner, {}}).first->second;
      sum.in_step.resize(out_.steps.size(), false);
      sum.in_step[step] = true;
      sum.owner.bytes += allocation.bytes;
      ++sum.owner.allocations;
    }
    std::map<OwnerKey, MemoryOwner> kept;
    const auto later_steps = static_cast<int64_t>(out_.steps.size()) - 1;
    for (auto& [key, sum] : owners) {
      if (!std::all_of(sum.in_step.begin() + 1, sum.in_step.end(), [](bool there) { return there; })) continue;
      sum.owner.bytes /= later_steps;
      sum.owner.allocations /= later_steps;
      kept.emplace(key, sum.owner);
    }
    out_.growth_owners = sorted(kept);
  }

  const Model& model_;
  const HostSlices& host_;
  const Phases& phases_;
  const Steps& steps_;
  const std::vector<Row>& rows_;
  MemoryReport& report_;
  std::vector<Allocation> allocations_;
  std::vector<int64_t> optimizer_starts_;
  std::unordered_set<Row> products_;  // matrix products whose output was seen
  std::unordered_map<uint32_t, Phase> phase_of_stack_;
  Row peak_event_ = kNoRow;
  DeviceMemory out_;
};

}  // namespace

bool is_allocator_call(std::string_view name) {
  return name == "cudaMalloc" || name == "cudaFree" || name == "hipMalloc" || name == "hipFree" ||
         name == "cuMemCreate" || name == "cuMemMap" || name == "cuMemUnmap" || name == "cuMemRelease";
}

std::string_view name_of(MemoryCategory category) {
  constexpr std::array<std::string_view, kMemoryCategoryCount> kNames = {
      "parameters",  "gradients", "optimizer state",  "activations", "inputs",
      "temporaries", "workspace", "before recording", "unknown"};
  return kNames[static_cast<size_t>(category)];
}

MemoryOwner owner_of(const Model& model, const MemoryBlock& block) {
  MemoryOwner owner{.category = block.category};
  if (block.op != kNoRow) owner.op = model.text(model.host_slices.name[block.op]);
  if (block.module != kNoRow) owner.module = module_name(model, block.module);
  if (block.event == kNoRow) return owner;
  const MemoryEvents& events = model.memory_events;
  if (owner.op.empty()) owner.op = model.text(events.op[block.event]);
  if (events.stack[block.event] != kNoString) owner.place = user_line(model.text(events.stack[block.event]));
  return owner;
}

MemoryReport memory_report(const Model& model) {
  const MemoryEvents& events = model.memory_events;
  std::map<std::pair<int32_t, int32_t>, std::vector<Row>> by_device;  // GPUs first
  for (Row event = 0; event < events.size(); ++event) {
    by_device[{-events.device_type[event], events.device[event]}].push_back(event);
  }
  MemoryReport report;
  report.category.resize(events.size(), MemoryCategory::kUnknown);
  report.allocators = allocator_report(model);
  const Phases phases = find_phases(model);
  const Steps steps = steps_of(model, StepUse::kHost);
  for (const auto& [device, rows] : by_device)
    report.devices.push_back(DeviceReader(model, phases, steps, rows, report).run());
  return report;
}

}  // namespace firelane::analyze
