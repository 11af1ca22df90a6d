// One sweep per thread over the slices in order of their starts, with a stack of the open
// ones; a slice is added to its row when it closes, for then its children are known.
//
// torch drops an event that is the only child of an event of the same name (aten::to inside
// aten::to) and lets its children move up. Whether a child is the only one is known when
// its parent closes, so the first child of the same name waits in its parent until then.
#include "analyze/ops/ops.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "analyze/device/device_work.h"
#include "analyze/ops/flops.h"
#include "analyze/ops/ops_groups.h"
#include "analyze/ops/ops_memory.h"
#include "analyze/ops/ops_stacks.h"
#include "base/wrapping.h"

namespace firelane::analyze {

namespace {

struct OpenSlice {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  Row row = kNoRow;
  Row backward = kNoRow;  // the innermost backward function around it, itself included
  OpsKey key = 0;
  uint32_t children = 0;
  bool is_top_level = true;
  bool holds_child = false;  // its only child so far has its name, and waits
  int64_t own_device_ns = 0;
  int64_t child_cpu_ns = 0;
  int64_t child_device_ns = 0;
  MemoryUse memory;
  MemoryUse child_memory;
  OpFlops flops;
  int64_t child_flops = 0;

  int64_t device_ns() const { return wrap_add(own_device_ns, child_device_ns); }
  int64_t flops_total() const { return std::max(flops.op_flops, child_flops); }
};

class Sweep {
 public:
  Sweep(const Model& model, const OpsOptions& options)
      : model_(model),
        options_(options),
        groups_(model, options.group_by_input_shape || options.group_by_overload || options.group_by_stack > 0),
        memory_(model.memory_events),
        flops_(model) {
    if (options.group_by_stack > 0) stacks_ = std::make_unique<OpsStacks>(model, options.group_by_stack);
  }

  OpsResult run() {
    add_device_slices();
    find_strayed_calls();
    for (uint32_t lane = 0; lane < model_.lanes.size(); ++lane) add_lane(lane);
    add_memory_outside();
    return finish();
  }

 private:
  void add_device_slices();
  void find_strayed_calls();
  void add_lane(uint32_t lane);
  void add_async(Row row, OpsKey key);
  void open(Row row, OpsKey key);
  void close();
  void emit(const OpenSlice& slice);
  void add_memory_outside();
  OpsResult finish();
  OpsEvent event_of(Row row, OpsKey key);
  std::string device_name() const;
  bool was_asked_for(std::string_view flag) const {
    const MetadataEntry* entry = model_.find_metadata(flag);
    return entry != nullptr && entry->json == "1";
  }

  const Model& model_;
  const OpsOptions& options_;
  OpsGroups groups_;
  MemoryIndex memory_;
  FlopsTable flops_;
  std::unique_ptr<OpsStacks> stacks_;
  std::vector<int64_t> own_device_ns_;        // per host slice; empty without device work
  std::vector<std::vector<Row>> strayed_to_;  // per lane, calls whose op is there; empty if there are none
  std::vector<Row> strayed_;                  // the same calls, ascending
  std::vector<OpenSlice> stack_;
  std::vector<OpenSlice> waiting_;  // per depth: the child that its slice holds
  OpsResult result_;
};

// Kineto's device work and calls carry the id of their op. Our own recorder gives ids to ops alone.
bool names_ops_of_work(const Model& model) {
  const auto is_known = [](int64_t id) { return id != kNoNumber; };
  const auto of_calls = model.call_details.external_id.view().cells();
  if (std::any_of(of_calls.begin(), of_calls.end(), is_known)) return true;
  const DeviceSlices& device = model.device_slices;
  for (Row row = 0; row < device.size(); ++row) {
    if (device.kind[row] != DeviceKind::kAnnotation && is_known(device.external_id[row])) return true;
  }
  return false;
}

// Device work is a row of its own, and time of the op that launched it. The op is the one the
// trace names; where the trace has no such ids (not Kineto), the one open at the launch.
void Sweep::add_device_slices() {
  const DeviceSlices& device = model_.device_slices;
  if (device.size() == 0) return;
  const OpDetails& ops = model_.op_details;
  const bool has_ids = names_ops_of_work(model_);
  // Kineto writes device annotations 1 ns wider on both sides, so that viewers nest them.
  const bool widens = model_.info.base_time_ns != 0;
  own_device_ns_.assign(model_.host_slices.size(), 0);
  for (Row row = 0; row < device.size(); ++row) {
    const OpsKey key = is_function_event(device.kind[row]) ? groups_.key_of(device.name[row]) : kIgnoredKey;
    if (key == kIgnoredKey) continue;
    if (!is_counted(model_, row)) continue;
    const Interval part = counted_part(model_, row);
    const bool is_annotation = device.kind[row] == DeviceKind::kAnnotation;
    const bool is_widened = is_annotation && widens && device.duration_ns[row] >= 2;
    const int64_t duration = part.end_ns - part.start_ns - (is_widened ? 2 : 0);
    OpsEvent event{.start_ns = part.start_ns + (is_widened ? 1 : 0),
                   .duration_ns = duration,
                   .order = device.source[row] == kNoSource ? row : device.source[row],
                   .key = key,
                   .on_device = true,
                   .is_user_annotation = is_annotation,
                   .is_top_level = true,
                   .self_device_ns = duration,
                   .device_ns = duration};
    if (stacks_) event.stack = stacks_->of_device(row);
    groups_.add(event);
    if (is_annotation) continue;
    result_.self_device_time_total_ns = wrap_add(result_.self_device_time_total_ns, duration);
    const Row op = device.op[row];
    const Row detail = op == kNoRow ? kNoRow : model_.op_detail(op);
    const bool is_linked =
        op != kNoRow && (!has_ids || (detail != kNoRow && ops.external_id[detail] == device.external_id[row]));
    int64_t& sum = is_linked ? own_device_ns_[op] : result_.unattributed_device_time_ns;
    sum = wrap_add(sum, duration);
  }
}

// A call belongs to the thread of its op. Kineto now and then writes it on another lane (a
// thread that it has no name for); such calls are swept with the op's lane.
void Sweep::find_strayed_calls() {
  const CallDetails& calls = model_.call_details;
  const HostSlices& host = model_.host_slices;
  for (Row call = 0; call < calls.size(); ++call) {
    const Row row = calls.slice[call];
    const Row op = calls.op[call];
    if (row == kNoRow || op == kNoRow || host.lane[op] == host.lane[row]) continue;
    if (strayed_to_.empty()) strayed_to_.resize(model_.lanes.size());
    strayed_to_[static_cast<uint32_t>(host.lane[op])].push_back(row);
    strayed_.push_back(row);
  }
  std::sort(strayed_.begin(), strayed_.end());
}

void Sweep::add_lane(uint32_t lane) {
  const HostSlices& host = model_.host_slices;
  const Row begin = model_.lanes.host_begin[lane];
  const Row end = model_.lanes.host_end[lane];
  const bool is_async = model_.lanes.kind[lane] == LaneKind::kAsync;
  memory_.restart();
  const auto add = [&](Row row) {
    if (!is_function_event(host.kind[row]) && !(options_.python_functions && is_python_function(model_, row))) {
      if (host.kind[row] == HostKind::kOverhead)
        result_.overhead_time_ns = wrap_add(result_.overhead_time_ns, host.duration_ns[row]);
      return;
    }
    const OpsKey key = groups_.key_of(host.name[row]);
    if (key == kIgnoredKey) return;
    is_async || is_async_slice(model_, row) ? add_async(row, key) : open(row, key);
  };
  if (strayed_.empty()) {
    for (Row row = begin; row < end; ++row) add(row);
  } else {
    std::vector<Row> rows = strayed_to_[lane];
    for (Row row = begin; row < end; ++row)
      if (!std::binary_search(strayed_.begin(), strayed_.end(), row)) rows.push_back(row);
    std::sort(rows.begin(), rows.end(), [&](Row a, Row b) {
      if (host.start_ns[a] != host.start_ns[b]) return host.start_ns[a] < host.start_ns[b];
      if (host.duration_ns[a] != host.duration_ns[b]) return host.duration_ns[a] > host.duration_ns[b];
      return a < b;
    });
    for (const Row row : rows) add(row);
  }
  while (!stack_.empty()) close();
}

OpsEvent Sweep::event_of(Row row, OpsKey key) {
  const HostSlices& host = model_.host_slices;
  OpsEvent event{.start_ns = host.start_ns[row],
                 .duration_ns = host.duration_ns[row],
                 .order = host.source[row] == kNoSource ? row : host.source[row],
                 .key = key,
                 .is_user_annotation = host.kind[row] == HostKind::kAnnotation,
                 .cpu_ns = host.duration_ns[row]};
  if (options_.group_by_input_shape && (host.kind[row] == HostKind::kOp || host.kind[row] == HostKind::kAnnotation) &&
      model_.op_detail(row) != kNoRow)
    event.shape = groups_.shape_of(model_.op_details.input_dims[model_.op_detail(row)]);
  if (options_.group_by_overload && host.kind[row] == HostKind::kOp && model_.op_detail(row) != kNoRow)
    event.overload = model_.op_details.overload[model_.op_detail(row)];
  return event;
}

// Asynchronous events have a total time and nothing else: no children, no self, no device time.
void Sweep::add_async(Row row, OpsKey key) {
  OpsEvent event = event_of(row, key);
  event.is_async = true;
  event.is_top_level = true;
  if (!memory_.empty()) event.memory = memory_.during(event.start_ns, event.start_ns + event.duration_ns);
  if (stacks_) event.stack = stacks_->of_host(row, kNoRow);
  const OpFlops flops = flops_.of(row);
  event.flops = flops.torch_flops;
  event.flops_total = flops.op_flops;
  groups_.add(event);
}

void Sweep::open(Row row, OpsKey key) {
  const HostSlices& host = model_.host_slices;
  const int64_t start = host.start_ns[row];
  const int64_t end = host.end_ns(row);
  while (!stack_.empty() && (start >= stack_.back().end_ns || end > stack_.back().end_ns)) close();
  OpenSlice slice{.start_ns = start, .end_ns = end, .row = row, .key = key};
  if (!own_device_ns_.empty()) slice.own_device_ns = own_device_ns_[row];
  if (!memory_.empty()) slice.memory = memory_.during(start, end);
  slice.flops = flops_.of(row);
  if (!stack_.empty()) {
    OpenSlice& parent = stack_.back();
    if (parent.holds_child) emit(waiting_[stack_.size() - 1]);
    parent.holds_child = false;
    ++parent.children;
    slice.is_top_level = false;
    slice.backward = parent.backward;
  }
  if (stacks_ && is_backward_function(model_, row)) slice.backward = row;
  stack_.push_back(slice);
}

void Sweep::close() {
  OpenSlice& slice = stack_.back();
  const size_t depth = stack_.size() - 1;
  if (slice.holds_child) {  // the only child, of the same name: its children become ours
    const OpenSlice& child = waiting_[depth];
    slice.child_cpu_ns = child.child_cpu_ns;
    slice.own_device_ns = wrap_add(slice.own_device_ns, child.own_device_ns);
    slice.child_device_ns = child.child_device_ns;
    slice.child_memory = child.child_memory;
    slice.flops.op_flops = std::max(slice.flops.op_flops, child.flops.op_flops);
    slice.child_flops = child.child_flops;
  }
  bool waits = false;
  if (depth > 0) {
    OpenSlice& parent = stack_[depth - 1];
    parent.child_cpu_ns = wrap_add(parent.child_cpu_ns, slice.end_ns - slice.start_ns);
    parent.child_device_ns = wrap_add(parent.child_device_ns, slice.device_ns());
    parent.child_memory += slice.memory;
    parent.child_flops = wrap_add(parent.child_flops, slice.flops_total());
    waits = parent.holds_child = parent.children == 1 && parent.key == slice.key;
  }
  if (waits) {
    if (waiting_.size() < depth) waiting_.resize(depth);
    waiting_[depth - 1] = slice;
  } else {
    emit(slice);
  }
  stack_.pop_back();
}

void Sweep::emit(const OpenSlice& slice) {
  OpsEvent event = event_of(slice.row, slice.key);
  event.is_top_level = slice.is_top_level;
  event.self_cpu_ns = wrap_sub(event.cpu_ns, slice.child_cpu_ns);
  event.self_device_ns = slice.own_device_ns;
  event.device_ns = slice.device_ns();
  event.memory = slice.memory;
  event.self_memory = slice.memory - slice.child_memory;
  event.flops = slice.flops.torch_flops;
  event.flops_total = slice.flops_total();
  event.self_flops = wrap_sub(event.flops_total, slice.child_flops);
  if (stacks_) event.stack = stacks_->of_host(slice.row, slice.backward);
  groups_.add(event);
}

// Memory that no event held, and every failed allocation, are events of their own.
void Sweep::add_memory_outside() {
  const MemoryEvents& events = model_.memory_events;
  const auto add = [&](Row row, OpsKey key) {
    const MemoryUse use = use_of(events.device_type[row], events.bytes[row]);
    groups_.add({.start_ns = events.time_ns[row],
                 .order = events.source[row] == kNoSource ? row : events.source[row],
                 .key = key,
                 .is_top_level = true,
                 .memory = use,
                 .self_memory = use});
  };
  for (const Row row : memory_.unclaimed()) add(row, groups_.memory_key());
  for (Row row = 0; row < events.size(); ++row)
    if (events.kind[row] == MemoryEventKind::kOutOfMemory) add(row, groups_.out_of_memory_key());
}

OpsResult Sweep::finish() {
  result_.rows = groups_.rows(options_.group_by_input_shape, stacks_.get());
  for (const OpsRow& row : result_.rows)
    result_.self_cpu_time_total_ns = wrap_add(result_.self_cpu_time_total_ns, row.self_cpu_time_total_ns);
  const OpDetails& ops = model_.op_details;
  result_.device_name = device_name();
  result_.has_memory = model_.memory_events.size() > 0 || was_asked_for("profile_memory");
  result_.has_flops = flops_.from_trace() || was_asked_for("with_flops");
  result_.has_shapes =
      std::any_of(ops.input_dims.begin(), ops.input_dims.end(), [](StringId dims) { return dims != kNoString; });
  return std::move(result_);
}

// What torch calls use_device.
std::string Sweep::device_name() const {
  const Accelerator accelerator = model_.info.accelerator;
  const bool is_cuda = accelerator == Accelerator::kCuda || accelerator == Accelerator::kHip;
  if (accelerator != Accelerator::kUnknown && !is_cuda) return std::string(name_of(accelerator));
  const bool has_device =
      model_.device_slices.size() > 0 || model_.call_details.size() > 0 || !model_.info.devices.empty();
  return has_device ? "cuda" : "";
}

}  // namespace

OpsResult ops(const Model& model, const OpsOptions& options) { return Sweep(model, options).run(); }

}  // namespace firelane::analyze
