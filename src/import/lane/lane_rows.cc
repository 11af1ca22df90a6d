#include "import/lane/lane_rows.h"

#include <algorithm>

#include "import/lane/extra_args.h"
#include "import/lane/inputs_json.h"
#include "model/host_role.h"
#include "model/module_call.h"

namespace firelane::importer {
namespace {

// Kineto counts from a grid of a quarter of a year, so that traces of all ranks share their zero.
constexpr int64_t kBaseGridNs = int64_t{7'889'238} * 1'000'000'000;
// Texts that a missing chunk may have defined; a larger hole in the ids is damage.
constexpr size_t kMaxTextGap = 1 << 20;

HostKind kind_of(format::Scope scope) {
  if (scope == format::Scope::kUser) return HostKind::kAnnotation;
  switch (format::group_of(scope)) {
    case format::ScopeGroup::kOp: return HostKind::kOp;
    case format::ScopeGroup::kPython:
    case format::ScopeGroup::kModule: return HostKind::kPython;
    case format::ScopeGroup::kCall: break;
  }
  if (scope == format::Scope::kRuntime) return HostKind::kRuntime;
  return scope == format::Scope::kDriver ? HostKind::kDriver : HostKind::kOverhead;
}

bool has_op(HostKind kind) { return kind == HostKind::kOp || kind == HostKind::kAnnotation; }

// Until convert_times(), the rows' time fields hold ticks, and their durations the ticks of the end.
int64_t as_time(uint64_t ticks) { return static_cast<int64_t>(ticks); }
uint64_t as_ticks(int64_t time) { return static_cast<uint64_t>(time); }
constexpr int64_t kStillOpen = INT64_MIN;

int32_t line_number(int64_t number) { return number <= 0 || number > INT32_MAX ? -1 : static_cast<int32_t>(number); }

}  // namespace

LaneRows::LaneRows(RawTrace& raw)
    : raw_(raw),
      pool_(raw.pools.emplace_back()),
      part_(raw.parts.emplace_back()),
      device_(raw, pool_, part_),
      allocator_(pool_, part_),
      texts_(1) {
  texts_[0].known = true;
  cpu_op_ = pool_.strings.intern("cpu_op");
  user_annotation_ = pool_.strings.intern("user_annotation");
  python_function_ = pool_.strings.intern("python_function");
  module_ = pool_.strings.intern("module");
  runtime_ = pool_.strings.intern("cuda_runtime");
  driver_ = pool_.strings.intern("cuda_driver");
  overhead_ = pool_.strings.intern("overhead");
  instant_ = pool_.strings.intern("cpu_instant_event");
  fwdbwd_ = pool_.strings.intern("fwdbwd");
}

StringId LaneRows::category_of(format::Scope scope) const {
  switch (kind_of(scope)) {
    case HostKind::kOp: return cpu_op_;
    case HostKind::kAnnotation: return user_annotation_;
    case HostKind::kPython: return scope == format::Scope::kModule ? module_ : python_function_;
    case HostKind::kRuntime: return runtime_;
    case HostKind::kDriver: return driver_;
    default: return overhead_;
  }
}

// ---- events -----------------------------------------------------------------------------

void LaneRows::add_device(std::string_view payload) {
  format::EventsReader reader(payload, start_.ticks);
  if (define(reader)) device_.add(format::DeviceReader(reader.rest()), [this](uint32_t id) { return text(id); });
}

bool LaneRows::define(format::EventsReader& reader) {
  uint32_t first = 0;
  std::vector<std::string_view> texts;
  if (!reader.read_definitions(first, texts) || first > texts_.size() + kMaxTextGap) {
    ++part_.losses[Stat::kLaneChunkDamaged];
    return false;
  }
  for (const std::string_view bytes : texts) {
    if (first >= texts_.size()) texts_.resize(size_t{first} + 1);
    if (first != 0) texts_[first] = {.bytes = std::string(bytes), .known = true, .overload = texts_[first].overload};
    ++first;
  }
  return true;
}

// The note of a text comes before the chunk that defines it.
void LaneRows::set_overload(uint64_t text_id, std::string_view overload) {
  if (text_id == 0 || text_id > texts_.size() + kMaxTextGap) {
    ++part_.losses[Stat::kLaneChunkDamaged];
    return;
  }
  if (text_id >= texts_.size()) texts_.resize(text_id + 1);
  texts_[text_id].overload = pool_.strings.intern(overload);
}

void LaneRows::add_events(std::string_view payload) {
  format::EventsReader reader(payload, start_.ticks);
  if (!define(reader)) return;
  format::SectionReader section;
  format::EventRecord r;
  while (reader.next_section(section)) {
    Thread& t = thread(section.thread_index(), section.thread_id());
    while (section.next(r)) record(t, r);
    if (section.damaged()) ++part_.losses[Stat::kLaneChunkDamaged];
  }
  if (reader.damaged()) ++part_.losses[Stat::kLaneChunkDamaged];
}

LaneRows::Thread& LaneRows::thread(uint32_t index, uint32_t thread_id) {
  const auto [at, added] = threads_.try_emplace(index);
  if (added) {
    at->second.thread_id = thread_id;
    at->second.lane = pool_.lane({.number = pid_}, {.number = thread_id});
  }
  return at->second;
}

StringId LaneRows::text(uint32_t id) {
  if (id >= texts_.size() || !texts_[id].known) return pool_.strings.intern("(name lost)");
  Text& t = texts_[id];
  if (!t.interned) {
    t.id = pool_.strings.intern(t.bytes);
    t.interned = true;
  }
  return t.id;
}

const LaneRows::Inputs& LaneRows::inputs(uint32_t id) {
  const auto [at, added] = inputs_.try_emplace(id);
  if (added && id < texts_.size()) {
    InputsJson json;
    if (!inputs_to_json(texts_[id].bytes, json)) ++part_.losses[Stat::kLaneChunkDamaged];
    at->second = {.dims = pool_.strings.intern(json.dims),
                  .types = pool_.strings.intern(json.types),
                  .strides = pool_.strings.intern(json.strides),
                  .concrete = pool_.strings.intern(json.concrete)};
  }
  return at->second;
}

StringId LaneRows::tensors(int64_t id) {
  if (id < 0 || static_cast<uint64_t>(id) >= texts_.size()) return {};
  const auto [at, added] = tensors_.try_emplace(id);
  if (added) {
    std::string json;
    if (!tensors_to_json(texts_[static_cast<size_t>(id)].bytes, json)) ++part_.losses[Stat::kLaneChunkDamaged];
    at->second = pool_.strings.intern(json);
  }
  return at->second;
}

void LaneRows::record(Thread& t, const format::EventRecord& r) {
  switch (r.kind) {
    case format::Record::kBegin:
    case format::Record::kBeginSequence: {
      const Row row = add_slice(t, r);
      t.open.push_back({row, format::group_of(r.scope)});
      break;
    }
    case format::Record::kEnd:
    case format::Record::kEndPython:
    case format::Record::kEndModule:
    case format::Record::kEndCall:
      end_slice(t, static_cast<format::ScopeGroup>(static_cast<int>(r.kind) - static_cast<int>(format::Record::kEnd)),
                r.ticks);
      break;
    case format::Record::kSlice: {
      const Row row = add_slice(t, r);
      part_.host_slices[row].duration_ns = as_time(r.ticks + static_cast<uint64_t>(r.number));
      break;
    }
    case format::Record::kAsyncBegin:
      async_.push_back({static_cast<uint64_t>(r.number), r.ticks, add_slice(t, r), t.lane});
      break;
    case format::Record::kAsyncEnd: async_.push_back({static_cast<uint64_t>(r.number), r.ticks, kNoRow, t.lane}); break;
    case format::Record::kAttribute: attribute(t, r); return;
    case format::Record::kMemory: memory(t, r); break;
    case format::Record::kInstant:
      part_.instants.push_back({.time_ns = as_time(r.ticks),
                                .lane = t.lane,
                                .name = text(r.text),
                                .category = instant_,
                                .scope = InstantScope::kThread});
      ++part_.event_count;
      break;
    case format::Record::kCounter:
      part_.counters.push_back(
          {.time_ns = as_time(r.ticks), .value = r.value, .pid = {.number = pid_}, .name = text(r.text)});
      ++part_.event_count;
      break;
    case format::Record::kLost: lost(t, r); break;
    case format::Record::kThreadName:
      t.name = pool_.strings.view(text(r.text));
      t.named_by_program = true;
      return;
    case format::Record::kExtended: return;
  }
  last_ticks_ = std::max(last_ticks_, r.ticks);
}

Row LaneRows::add_slice(Thread& t, const format::EventRecord& r) {
  const auto row = static_cast<Row>(part_.host_slices.size());
  RawHostSlice slice{.start_ns = as_time(r.ticks),
                     .duration_ns = kStillOpen,
                     .lane = t.lane,
                     .name = text(r.text),
                     .category = category_of(r.scope),
                     .kind = kind_of(r.scope)};
  if (slice.kind == HostKind::kPython) {
    slice.module =
        r.scope == format::Scope::kModule ? ModuleCall::kPath : module_call_of_frame(pool_.strings.view(slice.name));
  }
  if (has_op(slice.kind)) {
    slice.detail = static_cast<Row>(part_.op_details.size());
    RawOp& op = part_.op_details.emplace_back();
    op.external_id = static_cast<int64_t>(part_.op_details.size());
    if (r.kind == format::Record::kBeginSequence) op.sequence_number = r.number;
    if (r.text < texts_.size()) op.overload = texts_[r.text].overload;
  } else if (is_call(slice.kind)) {
    slice.detail = static_cast<Row>(part_.call_details.size());
    part_.call_details.emplace_back();
  }
  part_.host_slices.push_back(slice);
  ++part_.event_count;
  t.last_slice = row;
  return row;
}

void LaneRows::end_slice(Thread& t, format::ScopeGroup group, uint64_t ticks) {
  for (size_t i = t.open.size(); i-- > 0;) {
    if (t.open[i].group != group) continue;
    part_.host_slices[t.open[i].slice].duration_ns = as_time(ticks);
    t.open.erase(t.open.begin() + static_cast<ptrdiff_t>(i));
    return;
  }
  ++part_.losses[Stat::kEndWithoutBegin];
}

void LaneRows::attribute(Thread& t, const format::EventRecord& r) {
  if (t.last_slice == kNoRow) return;
  RawHostSlice& slice = part_.host_slices[t.last_slice];
  if (is_call(slice.kind)) {
    if (r.attribute == format::Attribute::kCorrelation) part_.call_details[slice.detail].correlation = r.number;
    return;
  }
  if (slice.kind == HostKind::kPython && r.attribute == format::Attribute::kCallLine) {
    slice.call_line = line_number(r.number);
    return;
  }
  if (!has_op(slice.kind)) return;
  RawOp& op = part_.op_details[slice.detail];
  switch (r.attribute) {
    case format::Attribute::kInputs: {
      const Inputs& in = inputs(r.text);
      op.input_dims = in.dims;
      op.input_types = in.types;
      op.input_strides = in.strides;
      op.concrete_inputs = in.concrete;
      break;
    }
    case format::Attribute::kFlops: op.flops = r.number; break;
    case format::Attribute::kForwardThread: op.forward_thread = r.number; break;
    case format::Attribute::kStack: op.stack = text(r.text); break;
    case format::Attribute::kModules: op.module_hierarchy = text(r.text); break;
    case format::Attribute::kSequence: op.sequence_number = r.number; break;
    case format::Attribute::kCallId: op.call_id = r.number; break;
    case format::Attribute::kTensors: op.tensors = tensors(r.number); break;
    case format::Attribute::kExtraArgs:
      if (r.text >= texts_.size()) break;
      if (const std::optional<RawComm> comm = collective_of(texts_[r.text].bytes, pool_)) {
        op.comm = static_cast<Row>(part_.comm_details.size());
        part_.comm_details.push_back(*comm);
      } else {
        op.more_args = object_of(texts_[r.text].bytes, pool_);
      }
      break;
    case format::Attribute::kCorrelation:
    case format::Attribute::kCallLine:
    case format::Attribute::kFile: break;
  }
}

void LaneRows::memory(const Thread& t, const format::EventRecord& r) {
  const int64_t stream = r.memory.place ? static_cast<int64_t>(r.memory.place->stream) : kNoNumber;
  const StringId pool = r.memory.place ? allocator_.pool_name(r.memory.place->pool) : StringId{};
  // The model counts a block as free when that was asked for.
  const bool is_segment = r.action == format::MemoryAction::kSegment;
  if (is_segment || r.action == format::MemoryAction::kFreeCompleted) {
    allocator_.add_event(r, as_time(r.ticks), t.lane);
    if (!is_segment) return;
    const std::string name = "GPU " + std::to_string(r.memory.device) + " reserved by the allocator (MiB)";
    part_.counters.push_back({.time_ns = as_time(r.ticks),
                              .value = static_cast<double>(r.memory.total_reserved_bytes) / (1 << 20),
                              .pid = {.number = pid_},
                              .name = pool_.strings.intern(name)});
    ++part_.event_count;
    return;
  }
  const auto known = [](int64_t total) { return total < 0 ? kNoNumber : total; };
  part_.memory_events.push_back({.time_ns = as_time(r.ticks),
                                 .address = r.memory.address,
                                 .bytes = r.memory.bytes,
                                 .total_allocated_bytes = known(r.memory.total_allocated_bytes),
                                 .total_reserved_bytes = known(r.memory.total_reserved_bytes),
                                 .stream = stream,
                                 .lane = t.lane,
                                 .kind = r.action == format::MemoryAction::kOutOfMemory ? MemoryEventKind::kOutOfMemory
                                         : r.memory.bytes < 0                           ? MemoryEventKind::kFree
                                                                                        : MemoryEventKind::kAlloc,
                                 .device_type = r.memory.device_type,
                                 .device = r.memory.device,
                                 .pool = pool});
  ++part_.event_count;
}

// Ends that were dropped: their slices are closed where the stream goes on.
void LaneRows::lost(Thread& t, const format::EventRecord& r) {
  for (size_t group = 0; group < 4; ++group) {
    const auto open = static_cast<size_t>(std::count_if(
        t.open.begin(), t.open.end(), [&](const Open& o) { return static_cast<size_t>(o.group) == group; }));
    const size_t ends = std::min<size_t>(r.lost_ends[group], open);
    for (size_t i = 0; i < ends; ++i) end_slice(t, static_cast<format::ScopeGroup>(group), r.ticks);
    part_.losses[Stat::kUnfinishedOp] += ends;
  }
}

// ---- the end ----------------------------------------------------------------------------

void LaneRows::finish() {
  const uint64_t stop = std::max(last_ticks_, last_pair_.ticks);
  pair_async_edges();
  close_open_slices(stop);
  link_forward_ops();
  number_evaluations();
  convert_times();
  name_lanes();
  for (RawOp& op : part_.op_details) op.external_id += first_op_id_;  // known by now: notes may come after events
}

// A range may end in another thread than it began in, and its id is an address that the next range may have again: only
// time says which end belongs to which begin, and a chunk holds one thread after the other.
void LaneRows::pair_async_edges() {
  std::stable_sort(async_.begin(), async_.end(), [](const AsyncEdge& a, const AsyncEdge& b) {
    return a.id != b.id ? a.id < b.id : a.ticks < b.ticks;
  });
  for (size_t i = 1; i < async_.size(); ++i) {
    const AsyncEdge& begin = async_[i - 1];
    const bool is_pair = begin.slice != kNoRow && async_[i].slice == kNoRow && async_[i].id == begin.id;
    if (!is_pair) continue;
    RawHostSlice& slice = part_.host_slices[begin.slice];
    slice.duration_ns = as_time(async_[i].ticks);
    if (async_[i].lane != begin.lane && slice.detail != kNoRow) part_.op_details[slice.detail].is_async = 1;
  }
}

void LaneRows::close_open_slices(uint64_t stop_ticks) {
  std::sort(pauses_.begin(), pauses_.end());
  for (RawHostSlice& slice : part_.host_slices) {
    if (slice.duration_ns != kStillOpen) continue;
    uint64_t end = stop_ticks;
    // Python functions are not seen to return once the tracer is off.
    if (slice.kind == HostKind::kPython) {
      const auto pause = std::lower_bound(pauses_.begin(), pauses_.end(), as_ticks(slice.start_ns));
      if (pause != pauses_.end()) end = *pause;
    }
    slice.duration_ns = as_time(end);
    // As in torch: what lies around it or in it is none of its parents or children.
    if (has_op(slice.kind)) part_.op_details[slice.detail].is_async = 1;
    ++part_.losses[Stat::kUnfinishedOp];
  }
}

// torch's rule: a backward op names the thread and the sequence number of its forward op; of
// the ops that carry that number the one begun last made the node.
void LaneRows::link_forward_ops() {
  std::vector<Row> rows;
  for (Row row = 0; row < part_.host_slices.size(); ++row) {
    const RawHostSlice& slice = part_.host_slices[row];
    if (has_op(slice.kind) && part_.op_details[slice.detail].sequence_number >= 0) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](Row a, Row b) {
    return as_ticks(part_.host_slices[a].start_ns) < as_ticks(part_.host_slices[b].start_ns);
  });
  struct Key {
    int64_t thread;
    int64_t sequence;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return static_cast<size_t>(static_cast<uint64_t>(key.sequence) * 0x9E3779B97F4A7C15u ^
                                 static_cast<uint64_t>(key.thread));
    }
  };
  std::unordered_map<Key, Row, KeyHash> forward;
  int64_t id = 0;
  for (const Row row : rows) {
    const RawHostSlice& slice = part_.host_slices[row];
    const RawOp& op = part_.op_details[slice.detail];
    if (op.forward_thread == kNoNumber || op.forward_thread == 0) {
      const int64_t thread_id = pool_.lanes[static_cast<uint32_t>(slice.lane)].tid.number;
      forward[{thread_id, op.sequence_number}] = row;
      continue;
    }
    const auto found = forward.find({op.forward_thread, op.sequence_number});
    if (found == forward.end()) continue;
    const RawHostSlice& from = part_.host_slices[found->second];
    ++id;
    part_.flow_ends.push_back({.time_ns = from.start_ns,
                               .id = id,
                               .name = fwdbwd_,
                               .category = fwdbwd_,
                               .lane = from.lane,
                               .phase = FlowPhase::kStart});
    part_.flow_ends.push_back({.time_ns = slice.start_ns,
                               .id = id,
                               .name = fwdbwd_,
                               .category = fwdbwd_,
                               .lane = slice.lane,
                               .phase = FlowPhase::kEnd,
                               .bind_enclosing = true});
  }
}

// As in torch's traces, the engine's frame around a backward function carries that function's numbers.
void LaneRows::number_evaluations() {
  std::vector<Row> last_op(pool_.lanes.size(), kNoRow);
  for (Row row = 0; row < part_.host_slices.size(); ++row) {
    const RawHostSlice& slice = part_.host_slices[row];
    if (slice.kind != HostKind::kOp) continue;
    const Row before = std::exchange(last_op[static_cast<uint32_t>(slice.lane)], row);
    const RawOp& op = part_.op_details[slice.detail];
    if (before == kNoRow || op.sequence_number < 0 || op.forward_thread <= 0) continue;
    const RawHostSlice& frame = part_.host_slices[before];
    const std::string_view name = pool_.strings.view(frame.name);
    if (!name.starts_with(kNodeName) || name.substr(kNodeName.size()) != pool_.strings.view(slice.name)) continue;
    part_.op_details[frame.detail].sequence_number = op.sequence_number;
    part_.op_details[frame.detail].forward_thread = op.forward_thread;
  }
}

void LaneRows::convert_times() {
  const TickConverter line(start_, last_pair_, ticks_per_second_);
  const int64_t base = start_.unix_ns - start_.unix_ns % kBaseGridNs;
  raw_.info.base_time_ns = base;
  const auto ns = [&](int64_t time) { return line.unix_ns(as_ticks(time)) - base; };
  part_.each_table([&]<typename RawRow>(RawVector<RawRow>& rows) {
    if constexpr (std::is_same_v<RawRow, RawDeviceSlice>) return;  // of the device's own clock
    for (RawRow& row : rows) {
      int64_t start = 0;
      RawRow::each_field(row, [&]<Use use, typename T>(UseIs<use>, T& value) {
        if constexpr (is_time(use)) value = start = ns(value);
        if constexpr (use == Use::kDuration) value = std::max<int64_t>(0, ns(value) - start);
      });
    }
  });
  for (const LightTicks& light : light_ticks_) {
    light_.push_back(
        {.begin_ns = ns(as_time(light.begin)), .end_ns = light.end == UINT64_MAX ? INT64_MAX : ns(as_time(light.end))});
  }
  device_.finish(line, base, pid_, program());
}

std::string LaneRows::program() const {
  const std::string path = command_.substr(0, command_.find(' '));
  return path.substr(path.rfind('/') + 1);
}

// As Kineto names them: "thread 1234 (pt_autograd_0)", and the process by its program.
void LaneRows::name_lanes() {
  using What = LaneNameKind;
  bool first = true;
  for (const auto& [index, t] : threads_) {
    const std::string id = std::to_string(t.thread_id);
    const std::string name = "thread " + id + (t.name.empty() ? "" : " (" + t.name + ")");
    part_.lane_names.push_back({.lane = t.lane, .what = What::kThreadName, .text = pool_.strings.intern(name)});
    part_.lane_names.push_back({.number = t.thread_id, .lane = t.lane, .what = What::kThreadSortIndex});
    if (!first) continue;
    first = false;
    part_.lane_names.push_back({.lane = t.lane, .what = What::kProcessName, .text = pool_.strings.intern(program())});
    part_.lane_names.push_back({.lane = t.lane, .what = What::kProcessLabels, .text = pool_.strings.intern("CPU")});
    part_.lane_names.push_back({.number = pid_, .lane = t.lane, .what = What::kProcessSortIndex});
  }
}

}  // namespace firelane::importer
