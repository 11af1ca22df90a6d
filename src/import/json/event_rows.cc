#include "import/json/event_rows.h"

#include <algorithm>

#include "base/hash.h"
#include "import/json/numbers.h"
#include "import/json/other_devices.h"
#include "import/json/unescape.h"
#include "model/collectives.h"
#include "model/copy_name.h"
#include "model/module_call.h"

namespace firelane::importer {

namespace {

// Appends a row; the first one of a part reserves for the whole part (pages that are not
// touched cost nothing).
template <typename T>
Row push(RawVector<T>& rows, const T& row, size_t expected) {
  if (rows.capacity() == 0) rows.reserve(std::max<size_t>(expected, 16));
  rows.push_back(row);
  return static_cast<Row>(rows.size() - 1);
}

}  // namespace

void RawEvent::clear() {
  phase = category = name = pid = tid = ts = dur = id = scope = instant_scope = {};
  bind_enclosing = false;
  if (seen_count > kArgCount) {
    args.fill({});
  } else {
    for (size_t i = 0; i < seen_count; ++i) args[static_cast<size_t>(seen_args[i])] = {};
  }
  seen_count = 0;
  series.clear();
}

void EventRows::begin_part(RawPart& part, size_t text_bytes) {
  part_ = &part;
  expected_rows_ = text_bytes / 120;
}

// Lists of pretty-printed files as Kineto writes them, so that the same shapes are the same text.
StringId EventRows::json_text(const RawEvent& event, ArgId which) {
  const std::string_view token = event.arg(which);
  if (token.find('\n') == std::string_view::npos) return pool_.strings.intern(token);
  std::string one_line;
  bool in_string = false;
  for (size_t i = 0; i < token.size(); ++i) {
    const char c = token[i];
    if (!in_string && is_json_space(c)) continue;
    one_line += c;
    if (c == '\\' && in_string && i + 1 < token.size()) one_line += token[++i];
    if (c == '"') in_string = !in_string;
    if (!in_string && (c == ',' || c == ':')) one_line += ' ';
  }
  return pool_.strings.intern(one_line);
}

StringId EventRows::string(std::string_view token) {
  if (token.size() < 2 || token.front() != '"') return pool_.strings.intern(token == "null" ? "" : token);
  const std::string_view text = token.substr(1, token.size() - 2);
  if (text.find('\\') == std::string_view::npos) return pool_.strings.intern(text);
  unescape_json(text, unescaped_);
  return pool_.strings.intern(unescaped_);
}

TraceId EventRows::trace_id(std::string_view token) {
  TraceId id;
  if (token.empty() || token == "null") return id;
  const std::string_view text = strip_quotes(token);
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id.number);
  if (parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() && id.number != kNoNumber) return id;
  return {.number = kNoNumber, .text = string(token)};
}

LaneId EventRows::lane(const RawEvent& event) {
  if (has_last_lane_ && event.tid == last_tid_ && event.pid == last_pid_) return last_lane_;
  last_pid_ = event.pid;
  last_tid_ = event.tid;
  last_lane_ = pool_.lane(trace_id(event.pid), trace_id(event.tid));
  has_last_lane_ = true;
  return last_lane_;
}

const Category& EventRows::category(const RawEvent& event, StringId& id) {
  if (event.category != last_category_text_ || last_category_text_.empty()) {
    last_category_text_ = event.category;
    last_category_ = string(event.category);
  }
  id = last_category_;
  const auto index = static_cast<size_t>(id);
  if (index >= categories_.size()) {
    categories_.resize(index + 1);
    category_known_.resize(index + 1);
  }
  if (!category_known_[index]) {
    categories_[index] = category_of(pool_.strings.view(id));
    category_known_[index] = true;
  }
  return categories_[index];
}

bool EventRows::read_time(const RawEvent& event, int64_t& time_ns) {
  switch (read_time_ns(event.ts, time_ns)) {
    case NumberState::kAbsent: ++part_->losses[Stat::kEventWithoutTime]; return false;
    case NumberState::kOutOfRange: ++part_->losses[Stat::kTimeOutOfRange]; return false;
    case NumberState::kOk: break;
  }
  if (time_ns < kMinTimeNs || time_ns > kMaxTimeNs) {
    ++part_->losses[Stat::kTimeOutOfRange];
    return false;
  }
  return true;
}

int64_t EventRows::read_duration(const RawEvent& event) {
  int64_t duration_ns = 0;
  const NumberState state = read_time_ns(event.dur, duration_ns);
  if (state == NumberState::kAbsent) {
    ++part_->losses[Stat::kDurationMissing];
    return 0;
  }
  if (state == NumberState::kOutOfRange || duration_ns < 0 || duration_ns > kMaxDurationNs) {
    ++part_->losses[Stat::kDurationOutOfRange];
    return 0;
  }
  return duration_ns;
}

int64_t EventRows::number(const RawEvent& event, ArgId which) {
  const std::string_view token = event.arg(which);
  if (token.empty()) return kNoNumber;
  int64_t value = kNoNumber;
  const NumberState state = read_int(token, value);
  if (state == NumberState::kOutOfRange) ++part_->losses[Stat::kIdOutOfRange];
  return state == NumberState::kOk ? value : kNoNumber;
}

// "8 read 4096; 9 overwrite; - read 64", as describe::data_dependencies_text() writes it.
void EventRows::add_data_dependencies(std::string_view token, Row op) {
  if (token.size() >= 2 && token.front() == '"') token = token.substr(1, token.size() - 2);
  const auto next_word = [](std::string_view& text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    return word;
  };
  while (!token.empty()) {
    std::string_view one = token.substr(0, token.find(';'));
    token.remove_prefix(std::min(token.size(), one.size() + 1));
    RawDataDependency row{.op = op};
    const std::string_view node = next_word(one), use = next_word(one), bytes = next_word(one);
    const bool has_node = node == "-" || read_int(node, row.producer_node) == NumberState::kOk;
    const auto* const known = std::find(std::begin(kDataUseWords), std::end(kDataUseWords), use);
    if (!has_node || known == std::end(kDataUseWords)) continue;
    row.use = static_cast<DataUse>(known - std::begin(kDataUseWords));
    if (!bytes.empty() && (read_int(bytes, row.bytes) != NumberState::kOk || row.bytes < 0)) row.bytes = kNoNumber;
    part_->data_dependencies.push_back(row);
  }
}

// Kineto writes 0 where no observer asked torch to number its calls.
int64_t EventRows::call_id(const RawEvent& event) {
  const int64_t id = number(event, ArgId::kCallId);
  return id == 0 ? kNoNumber : id;
}

float EventRows::real(const RawEvent& event, ArgId which) {
  double value = -1;
  const std::string_view token = event.arg(which);
  if (token.empty() || read_real(token, value) != NumberState::kOk) return -1;
  return static_cast<float>(std::clamp(value, -1e30, 1e30));
}

void EventRows::add(const RawEvent& event, uint64_t source) {
  ++part_->event_count;
  const std::string_view phase = strip_quotes(event.phase);
  if (phase.size() != 1) {
    ++part_->losses[phase.empty() ? Stat::kEventWithoutPhase : Stat::kPhaseUnknown];
    return;
  }
  if (phase[0] == 'M') return add_metadata(event);
  int64_t time_ns = 0;
  switch (phase[0]) {
    case 'X':
      if (read_time(event, time_ns)) add_slice(event, source, time_ns);
      return;
    case 'i':
    case 'I':
    case 'R': {
      if (!read_time(event, time_ns)) return;
      if (event.name == "\"[memory]\"") return add_memory(event, source, time_ns, false);
      if (event.name == "\"[OutOfMemory]\"") return add_memory(event, source, time_ns, true);
      RawInstant row{.time_ns = time_ns, .source = source, .lane = lane(event), .name = string(event.name)};
      category(event, row.category);
      const std::string_view scope = strip_quotes(event.instant_scope);
      if (scope == "p") row.scope = InstantScope::kProcess;
      if (scope == "g") row.scope = InstantScope::kGlobal;
      push(part_->instants, row, expected_rows_);
      return;
    }
    case 'C':
      if (read_time(event, time_ns)) add_counter(event, time_ns);
      return;
    case 's':
      if (read_time(event, time_ns)) add_flow(event, time_ns, FlowPhase::kStart);
      return;
    case 't':
      if (read_time(event, time_ns)) add_flow(event, time_ns, FlowPhase::kStep);
      return;
    case 'f':
      if (read_time(event, time_ns)) add_flow(event, time_ns, FlowPhase::kEnd);
      return;
    case 'B':
    case 'E':
    case 'b':
    case 'e':
    case 'n':
      if (read_time(event, time_ns)) add_edge(event, source, time_ns, phase[0]);
      return;
    // The async phases of old Chrome traces: start, finish, steps.
    case 'S':
      if (read_time(event, time_ns)) add_edge(event, source, time_ns, 'b');
      return;
    case 'F':
      if (read_time(event, time_ns)) add_edge(event, source, time_ns, 'e');
      return;
    case 'T':
    case 'p':
      if (read_time(event, time_ns)) add_edge(event, source, time_ns, 'n');
      return;
    default: ++part_->losses[Stat::kPhaseUnknown];
  }
}

Category EventRows::refined(const RawEvent& event, Category category) const {
  if (category.known) {
    if (category.on_device && category.device == DeviceKind::kOther && category.accelerator == Accelerator::kMtia)
      category.device = mtia_kind(strip_quotes(event.name));
    return category;
  }
  if (!event.category.empty()) return category;
  return ascend_category(strip_quotes(event.name), strip_quotes(event.arg(ArgId::kTaskType)),
                         strip_quotes(event.arg(ArgId::kLevel)));
}

void EventRows::add_slice(const RawEvent& event, uint64_t source, int64_t start_ns) {
  StringId category_id{};
  const Category kind = refined(event, category(event, category_id));
  if (kind.accelerator != Accelerator::kUnknown) part_->accelerator = kind.accelerator;
  if (event.name == "\"[memory]\"" && !kind.on_device) return add_memory(event, source, start_ns, false);
  const LaneId on = lane(event);
  if (kind.on_device) {
    // Kineto wrote kernels at time 0 when CUPTI gave no times (kineto#109).
    if (start_ns == 0) {
      ++part_->losses[Stat::kEventWithoutTime];
      return;
    }
    return add_device_slice(event,
                            {.start_ns = start_ns,
                             .duration_ns = read_duration(event),
                             .source = source,
                             .lane = on,
                             .name = string(event.name),
                             .category = category_id,
                             .kind = kind.device},
                            kind.device);
  }
  RawHostSlice row{.start_ns = start_ns,
                   .duration_ns = read_duration(event),
                   .source = source,
                   .lane = on,
                   .name = string(event.name),
                   .category = category_id,
                   .kind = kind.host};
  // The exporter of torch builds without Kineto gives no category but names its processes.
  if (!kind.known && event.category.empty() && event.pid == "\"CPU functions\"") row.kind = HostKind::kOp;
  // Ascend's exporter writes steps among the operators.
  if (row.kind == HostKind::kOp && event.name.starts_with("\"ProfilerStep#")) row.kind = HostKind::kAnnotation;
  if (row.kind == HostKind::kOp || row.kind == HostKind::kAnnotation) {
    if (event.arg(ArgId::kFinished) == "false") ++part_->losses[Stat::kUnfinishedOp];
    row.detail = push(part_->op_details,
                      RawOp{.external_id = number(event, ArgId::kExternalId),
                            .sequence_number = number(event, ArgId::kSequenceNumber),
                            .forward_thread = number(event, ArgId::kForwardThread),
                            .call_id = call_id(event),
                            .data_node = number(event, ArgId::kDataNode),
                            .flops = number(event, ArgId::kFlops),
                            .input_dims = json_text(event, ArgId::kInputDims),
                            .input_types = json_text(event, ArgId::kInputTypes),
                            .input_strides = json_text(event, ArgId::kInputStrides),
                            .concrete_inputs = json_text(event, ArgId::kConcreteInputs),
                            .stack = string(event.arg(ArgId::kCallStack)),
                            .module_hierarchy = string(event.arg(ArgId::kModuleHierarchy)),
                            .overload = string(event.arg(ArgId::kOverload)),
                            .comm = add_comm(event)},
                      expected_rows_);
    if (const std::string_view data = event.arg(ArgId::kDataDependencies); !data.empty())
      add_data_dependencies(data, row.detail);
    if (const StringId overload = part_->op_details.back().overload; overload != kNoString) {
      // Our own export, with the names that torch's capture_overload_names gives: "aten::add.Tensor".
      const std::string_view name = pool_.strings.view(row.name);
      const std::string suffix = "." + std::string(pool_.strings.view(overload));
      if (name.ends_with(suffix)) row.name = pool_.strings.intern(name.substr(0, name.size() - suffix.size()));
    }
  } else if (row.kind == HostKind::kPython) {
    row.call_line = line_of(strip_quotes(event.arg(ArgId::kCallFrom)));
    row.module = pool_.strings.view(row.category) == "module" ? ModuleCall::kPath  // our own export
                                                              : module_call_of_frame(pool_.strings.view(row.name));
  } else if (is_call(row.kind)) {
    row.detail = push(
        part_->call_details,
        RawCall{.correlation = number(event, ArgId::kCorrelation), .external_id = number(event, ArgId::kExternalId)},
        expected_rows_);
  }
  push(part_->host_slices, row, expected_rows_);
}

void EventRows::add_device_slice(const RawEvent& event, RawDeviceSlice row, DeviceKind kind) {
  row.correlation = number(event, ArgId::kCorrelation);
  row.external_id = number(event, ArgId::kExternalId);
  row.stream = number(event, ArgId::kStream);
  const int64_t device = number(event, ArgId::kDevice);
  const RawPool::Lane& on = pool_.lanes[static_cast<uint32_t>(row.lane)];
  row.device = to_int32(device != kNoNumber ? device : on.pid.number);
  if (row.stream == kNoNumber) row.stream = on.tid.number;
  row.comm = add_comm(event);
  if (kind == DeviceKind::kKernel) {
    RawKernel kernel{.shared_memory_bytes = number(event, ArgId::kSharedMemory),
                     .context = number(event, ArgId::kContext),
                     .graph_id = number(event, ArgId::kGraphId),
                     .graph_node_id = number(event, ArgId::kGraphNodeId),
                     .flops = number(event, ArgId::kFlops),
                     .bytes_accessed = number(event, ArgId::kBytesAccessed),
                     .registers = to_int32(number(event, ArgId::kRegisters)),
                     .blocks_per_sm = real(event, ArgId::kBlocksPerSm),
                     .warps_per_sm = real(event, ArgId::kWarpsPerSm),
                     .occupancy_percent = real(event, ArgId::kOccupancy),
                     .op_category = string(event.arg(ArgId::kHloCategory)),
                     .op_name = string(event.arg(ArgId::kHloOp)),
                     .program = string(event.arg(ArgId::kProgram))};
    read_triple(event.arg(ArgId::kGrid), kernel.grid_x, kernel.grid_y, kernel.grid_z);
    read_triple(event.arg(ArgId::kBlock), kernel.block_x, kernel.block_y, kernel.block_z);
    row.detail = push(part_->kernel_details, kernel, expected_rows_);
  } else if (kind == DeviceKind::kCopy || kind == DeviceKind::kSet) {
    CopyKinds kinds = read_copy_name(pool_.strings.view(row.name));
    if (kinds.direction == CopyDirection::kUnknown)
      kinds.direction = direction_in_words(strip_quotes(event.arg(ArgId::kDirection)));
    row.detail = push(part_->copy_details,
                      RawCopy{.bytes = number(event, ArgId::kBytes),
                              .context = number(event, ArgId::kContext),
                              .graph_id = number(event, ArgId::kGraphId),
                              .graph_node_id = number(event, ArgId::kGraphNodeId),
                              .source_device = number(event, ArgId::kFromDevice),
                              .target_device = number(event, ArgId::kToDevice),
                              .bandwidth_gb_s = real(event, ArgId::kBandwidth),
                              .direction = kinds.direction,
                              .source_memory = kinds.source,
                              .target_memory = kinds.target},
                      expected_rows_);
  } else if (kind == DeviceKind::kSync) {
    const RawSync sync{.wait_on_stream = number(event, ArgId::kWaitOnStream),
                       .wait_on_correlation = number(event, ArgId::kWaitOnCorrelation),
                       .wait_on_event = number(event, ArgId::kWaitOnEvent),
                       .context = number(event, ArgId::kContext)};
    // Some devices write that they wait, and not for what.
    const bool is_known =
        std::max({sync.wait_on_stream, sync.wait_on_correlation, sync.wait_on_event, sync.context}) != kNoNumber;
    if (is_known) row.detail = push(part_->sync_details, sync, expected_rows_);
  }
  push(part_->device_slices, row, expected_rows_);
}

Row EventRows::add_comm(const RawEvent& event) {
  if (event.arg(ArgId::kCollective).empty()) return kNoRow;
  return push(part_->comm_details,
              RawComm{.in_elements = number(event, ArgId::kInElements),
                      .out_elements = number(event, ArgId::kOutElements),
                      .group_size = number(event, ArgId::kGroupSize),
                      .global_rank_start = number(event, ArgId::kGlobalRankStart),
                      .global_rank_stride = number(event, ArgId::kGlobalRankStride),
                      .rank = number(event, ArgId::kRank),
                      .source_rank = number(event, ArgId::kSourceRank),
                      .destination_rank = number(event, ArgId::kDestinationRank),
                      .sequence = number(event, ArgId::kCommSequence),
                      .collective = string(event.arg(ArgId::kCollective)),
                      .dtype = string(event.arg(ArgId::kDtype)),
                      .group_name = string(event.arg(ArgId::kGroupName)),
                      .group_description = string(event.arg(ArgId::kGroupDescription)),
                      .group_ranks = string(event.arg(ArgId::kGroupRanks)),
                      .in_split_sizes = string(event.arg(ArgId::kInSplitSizes)),
                      .out_split_sizes = string(event.arg(ArgId::kOutSplitSizes)),
                      .state = comm_state_named(strip_quotes(event.arg(ArgId::kCommState)))},
              expected_rows_);
}

void EventRows::add_memory(const RawEvent& event, uint64_t source, int64_t time_ns, bool out_of_memory) {
  const int64_t bytes = number(event, ArgId::kMemoryBytes);
  if (bytes == kNoNumber) {
    ++part_->losses[Stat::kMemoryEventIncomplete];
    return;
  }
  const int64_t address = number(event, ArgId::kMemoryAddress);
  const int64_t device = number(event, ArgId::kMemoryDeviceId);
  const int64_t device_type = number(event, ArgId::kMemoryDeviceType);
  push(part_->memory_events,
       RawMemory{.time_ns = time_ns,
                 .address = address == kNoNumber ? 0 : static_cast<uint64_t>(address),
                 .bytes = bytes,
                 .total_allocated_bytes = number(event, ArgId::kMemoryTotalAllocated),
                 .total_reserved_bytes = number(event, ArgId::kMemoryTotalReserved),
                 .source = source,
                 .lane = lane(event),
                 .kind = out_of_memory ? MemoryEventKind::kOutOfMemory
                         : bytes < 0   ? MemoryEventKind::kFree
                                       : MemoryEventKind::kAlloc,
                 .device_type = to_int32(device_type == kNoNumber ? 0 : device_type),
                 .device = to_int32(device)},
       expected_rows_);
}

void EventRows::add_counter(const RawEvent& event, int64_t time_ns) {
  const TraceId pid = trace_id(event.pid);
  const StringId name = string(event.name);
  for (const auto& [series, token] : event.series) {
    double value = 0;
    if (read_real(token, value) != NumberState::kOk) {
      ++part_->losses[Stat::kNotANumber];
      continue;
    }
    unescape_json(series, unescaped_);
    push(part_->counters,
         RawCounter{
             .time_ns = time_ns, .value = value, .pid = pid, .name = name, .series = pool_.strings.intern(unescaped_)},
         expected_rows_);
  }
}

void EventRows::add_flow(const RawEvent& event, int64_t time_ns, FlowPhase phase) {
  RawFlow row{.time_ns = time_ns,
              .name = string(event.name),
              .lane = lane(event),
              .phase = phase,
              .bind_enclosing = event.bind_enclosing};
  category(event, row.category);
  if (read_int(event.id, row.id) != NumberState::kOk) row.id = static_cast<int64_t>(hash_text(event.id));
  push(part_->flow_ends, row, expected_rows_);
}

void EventRows::add_edge(const RawEvent& event, uint64_t source, int64_t time_ns, char phase) {
  RawEdge row{.time_ns = time_ns, .source = source, .name = string(event.name), .lane = lane(event), .phase = phase};
  category(event, row.category);
  if (phase != 'B' && phase != 'E') {
    const std::string_view id = strip_quotes(event.id);
    row.id = event.scope.empty() ? pool_.strings.intern(id.empty() ? "?" : id)
                                 : pool_.strings.intern(std::string(strip_quotes(event.scope)) + ":" + std::string(id));
  }
  push(part_->edges, row, expected_rows_);
}

void EventRows::add_metadata(const RawEvent& event) {
  using What = LaneNameKind;
  const std::string_view name = strip_quotes(event.name);
  RawLaneName row{.lane = lane(event)};
  if (name == "process_name" || name == "thread_name") {
    row.what = name == "process_name" ? What::kProcessName : What::kThreadName;
    row.text = string(event.arg(ArgId::kName));
    std::string_view text = pool_.strings.view(row.text);
    if (text.ends_with(' ')) {  // Kineto writes "stream 7 "
      while (text.ends_with(' ')) text.remove_suffix(1);
      row.text = pool_.strings.intern(std::string(text));
    }
  } else if (name == "process_labels") {
    row.what = What::kProcessLabels;
    row.text = string(event.arg(ArgId::kLabels));
  } else if (name == "process_sort_index" || name == "thread_sort_index") {
    row.what = name == "process_sort_index" ? What::kProcessSortIndex : What::kThreadSortIndex;
    row.number = number(event, ArgId::kSortIndex);
  } else {
    return;
  }
  part_->lane_names.push_back(row);
}

}  // namespace firelane::importer
