#include "import/dumps/snapshot_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "import/dumps/document_json.h"
#include "import/dumps/frames.h"
#include "import/dumps/snapshot_actions.h"
#include "import/dumps/snapshot_start.h"
#include "import/metadata.h"

namespace firelane::importer {

namespace {

constexpr int32_t kCpuType = 0, kCudaType = 1;
constexpr uint64_t kMostBlockBytes = uint64_t{1}
                                     << 50;  // of a block; an allocation that failed may have asked for more
constexpr uint64_t kHighestAddress = uint64_t{1} << 62;
constexpr int64_t kMostDevices = 4096;
constexpr size_t kMostMetadataBytes = 65'536;

// One event of the history, understood.
struct Happened {
  Action action = Action::kOther;
  uint64_t address = 0;
  uint64_t bytes = 0;
  int64_t stream = kNoNumber;
  int64_t time_ns = 0;
  StringId pool = kNoString;
  StackText text;
  Value entry;
};

class SnapshotRows {
 public:
  SnapshotRows(const Document& document, const SnapshotWindow& window)
      : document_(document),
        window_(window),
        pool_(raw_.pools.emplace_back()),
        part_(raw_.parts.emplace_back()),
        frames_(document, pool_.strings),
        used_(document.container_count(), false) {}

  RawTrace run() {
    raw_.info.format = "PyTorch memory snapshot";
    raw_.info.origin = Origin::kMemorySnapshot;
    const bool is_list = document_.type(document_.root) == ValueType::kList;
    read_segments(is_list ? document_.root : field("segments"));
    size_t device = 0;
    document_.each(field("device_traces"), [&](Value events) {
      if (device < static_cast<size_t>(kMostDevices)) add_device(static_cast<int32_t>(device++), events);
      return true;
    });
    for (const auto& [left, state] : states_) add_state_alone(left, state);
    add_host_history(field("host_traces"));
    add_annotations(field("external_annotations"));
    leave_out_others();
    name_lanes();
    keep_settings();
    return std::move(raw_);
  }

 private:
  Value field(std::string_view key) const { return Field(document_, key).of(document_.root); }
  std::optional<uint64_t> number(Value value) const {
    const std::optional<int64_t> found = document_.integer(value);
    return found && *found >= 0 ? std::optional<uint64_t>(static_cast<uint64_t>(*found)) : std::nullopt;
  }
  static bool is_place(std::optional<uint64_t> address, std::optional<uint64_t> bytes) {
    return address && bytes && *bytes < kMostBlockBytes && *address < kHighestAddress;
  }
  void malformed() { ++part_.losses[Stat::kDumpEntryMalformed]; }
  // Each dictionary is one row: one that is referred to again would be counted twice.
  bool use(Value row) {
    if (document_.type(row) != ValueType::kDict || used_[document_.container(row)]) {
      malformed();
      return false;
    }
    used_[document_.container(row)] = true;
    return true;
  }

  // (0, 0): the common one; a graph's or a user's has other numbers.
  StringId pool_name(Value id) {
    std::vector<int64_t> numbers;
    document_.each(id, [&](Value item) {
      numbers.push_back(document_.integer(item).value_or(0));
      return numbers.size() < 2;
    });
    if (numbers.size() < 2) return kNoString;
    if (numbers[0] == 0 && numbers[1] == 0) return pool_.strings.intern("common");
    return pool_.strings.intern(numbers[0] != 0 ? "graph " + std::to_string(numbers[0])
                                                : "pool " + std::to_string(numbers[1]));
  }

  // Events say since torch 2.9 which pool they are of; before, that of all segments if they have the same.
  StringId name_pool(Value id) {
    const StringId name = pool_name(id);
    if (!is_first_pool_ && name != only_pool_) only_pool_ = kNoString;
    if (std::exchange(is_first_pool_, false)) only_pool_ = name;
    return name;
  }

  // ---- the state at the end --------------------------------------------------------------

  struct Device {
    AllocatorState state;
    std::map<uint64_t, StackText> stacks;  // of blocks that are held, by address
  };

  void read_segments(Value segments) {
    const Field device(document_, "device"), address(document_, "address"), size(document_, "total_size"),
        stream(document_, "stream"), pool(document_, "segment_pool_id"), expandable(document_, "is_expandable"),
        blocks(document_, "blocks");
    document_.each(segments, [&](Value segment) {
      if (!use(segment)) return true;
      const auto at = number(address.of(segment)), bytes = number(size.of(segment));
      const int64_t index = document_.integer(device.of(segment)).value_or(-1);
      if (!is_place(at, bytes) || index < 0 || index >= kMostDevices) {
        malformed();
        return true;
      }
      Device& held = states_[static_cast<int32_t>(index)];
      held.state.segments[*at] = {.bytes = *bytes,
                                  .stream = document_.integer(stream.of(segment)).value_or(kNoNumber),
                                  .pool = name_pool(pool.of(segment)),
                                  .is_expandable = document_.truth(expandable.of(segment)).value_or(false)};
      read_blocks(blocks.of(segment), *at, *at + *bytes, held);
      return true;
    });
  }

  // Older versions give no address: blocks follow each other from the segment's start on.
  void read_blocks(Value blocks, uint64_t begin, uint64_t end, Device& held) {
    document_.each(blocks, [&](Value block) {
      if (!use(block)) return true;
      const auto bytes = number(block_size_.of(block));
      const uint64_t at = number(block_address_.of(block)).value_or(begin);
      if (!is_place(at, bytes) || at < begin || *bytes > end - at) {
        malformed();
        return true;
      }
      begin = at + *bytes;
      const std::string_view state = document_.text(block_state_.of(block));
      if (state == "inactive" || *bytes == 0) return true;
      const bool is_waiting = state == "active_pending_free" || state == "active_awaiting_free";
      held.state.blocks[at] = {*bytes, is_waiting ? AllocatorBlockState::kWaiting : AllocatorBlockState::kAllocated};
      held.stacks[at] = frames_.stack_of(frames_field_.of(block));
      return true;
    });
  }

  // ---- the history -----------------------------------------------------------------------

  // Times are microseconds since 1970 of which many events have the same: each gets a nanosecond of its own, so that
  // their order stays. False: there was none.
  bool add_history(Value events, int32_t type, int32_t device) {
    int64_t last_ns = kMinTimeNs;
    // Room for as many of each kind as there may be; pages that are not touched cost nothing.
    const size_t most = document_.size(events);
    part_.memory_events.reserve(part_.memory_events.size() + most);
    part_.allocator_events.reserve(part_.allocator_events.size() + most);
    document_.each(events, [&](Value entry) {
      if (!use(entry)) return true;
      Happened event{.action = actions_.of(action_.of(entry)), .entry = entry};
      const std::optional<int64_t> time_us = document_.integer(time_.of(entry));
      // Before torch 2.2 events had no time.
      int64_t time_ns = std::max<int64_t>(last_ns, 0) + 1000;
      if (time_us && (*time_us < 0 || *time_us > kMaxTimeNs / 2000)) {
        malformed();
        return true;
      }
      if (time_us) time_ns = *time_us * 1000;
      const bool is_failure = event.action == Action::kOutOfMemory;
      const auto address = number(address_.of(entry)), bytes = number(size_.of(entry));
      if (event.action != Action::kOther && !is_failure && !is_place(address, bytes)) {
        malformed();
        return true;
      }
      event.time_ns = last_ns = std::max(time_ns, last_ns + 1);
      event.address = address.value_or(0);
      event.bytes = bytes.value_or(0);
      event.stream = document_.integer(stream_.of(entry)).value_or(kNoNumber);
      event.pool = pool_name(pool_id_.of(entry));
      if (event.pool == kNoString) event.pool = only_pool_;
      event.text = frames_.stack_of(frames_field_.of(entry));
      add_event(type, device, event);
      return true;
    });
    return last_ns != kMinTimeNs;
  }

  static void undo(const RawMemory& event, AllocatorState& state) {
    if (event.kind == MemoryEventKind::kAlloc) state.undo_alloc(event.address);
    if (event.kind == MemoryEventKind::kFree) state.undo_free(event.address, static_cast<uint64_t>(-event.bytes));
  }
  static void undo(const RawAllocatorEvent& event, AllocatorState& state) {
    const auto bytes = static_cast<uint64_t>(event.bytes);
    switch (event.kind) {
      case AllocatorEventKind::kFreeCompleted: return state.undo_free_completed(event.address, bytes);
      case AllocatorEventKind::kSegmentAlloc:
      case AllocatorEventKind::kSegmentMap: return state.undo_segment_more(event.address, bytes);
      case AllocatorEventKind::kSegmentFree:
      case AllocatorEventKind::kSegmentUnmap: {
        const bool is_mapped = event.kind == AllocatorEventKind::kSegmentUnmap;
        return state.undo_segment_less(event.address, bytes,
                                       {.stream = event.stream, .pool = event.pool, .is_expandable = is_mapped});
      }
    }
  }

  void add_device(int32_t device, Value events) {
    const size_t first_memory = part_.memory_events.size(), first_allocator = part_.allocator_events.size();
    if (!add_history(events, kCudaType, device)) return;
    Device at_start = std::exchange(states_[device], {});
    states_.erase(device);
    // Both lists from their ends, the later event first.
    size_t memory = part_.memory_events.size(), allocator = part_.allocator_events.size();
    int64_t start_ns = INT64_MAX;
    while (memory > first_memory || allocator > first_allocator) {
      const int64_t memory_ns = memory > first_memory ? part_.memory_events[memory - 1].time_ns : kMinTimeNs;
      const int64_t allocator_ns =
          allocator > first_allocator ? part_.allocator_events[allocator - 1].time_ns : kMinTimeNs;
      if (std::max(memory_ns, allocator_ns) < window_.start_ns) break;
      start_ns = std::max(memory_ns, allocator_ns);
      if (memory_ns > allocator_ns) {
        undo(part_.memory_events[--memory], at_start.state);
      } else {
        undo(part_.allocator_events[--allocator], at_start.state);
      }
    }
    const bool has_events =
        part_.memory_events.size() > first_memory || part_.allocator_events.size() > first_allocator;
    if (!has_events) return;  // marks alone
    if (start_ns == INT64_MAX || start_ns > window_.end_ns) start_ns = window_.start_ns;
    add_state(device, start_ns - 1, at_start, /*adds_known_blocks=*/false);
  }

  // A device without history: what it held, as if it had been allocated then.
  void add_state_alone(int32_t device, const Device& state) { add_state(device, 0, state, /*adds_known_blocks=*/true); }

  void add_state(int32_t device, int64_t time_ns, const Device& held, bool adds_known_blocks) {
    for (const auto& [address, segment] : held.state.segments) {
      part_.allocator_segments.push_back({.time_ns = time_ns,
                                          .address = address,
                                          .bytes = static_cast<int64_t>(segment.bytes),
                                          .stream = segment.stream,
                                          .device_type = kCudaType,
                                          .device = device,
                                          .pool = segment.pool,
                                          .is_expandable = segment.is_expandable});
    }
    if (held.state.segments.empty())
      part_.allocator_segments.push_back({.time_ns = time_ns, .device_type = kCudaType, .device = device});
    int64_t at_ns = time_ns;
    for (const auto& [address, block] : held.state.blocks) {
      if (!adds_known_blocks || block.state == AllocatorBlockState::kWaiting) {
        part_.allocator_blocks.push_back({.time_ns = time_ns,
                                          .address = address,
                                          .bytes = static_cast<int64_t>(block.bytes),
                                          .device_type = kCudaType,
                                          .device = device,
                                          .state = block.state});
        continue;
      }
      const auto stack = held.stacks.find(address);
      add_memory(kCudaType, device,
                 {.action = Action::kAlloc,
                  .address = address,
                  .bytes = block.bytes,
                  .time_ns = ++at_ns,
                  .text = stack == held.stacks.end() ? StackText() : stack->second});
    }
  }

  LaneId lane_of(int32_t type, int32_t device) {
    const int64_t number = type == kCpuType ? kMostDevices : device;
    if (std::exchange(last_lane_number_, number) != number) {
      last_lane_ = pool_.lane(pool_.text_id("memory snapshot"), {.number = number});
    }
    return last_lane_;
  }

  void add_event(int32_t type, int32_t device, const Happened& event) {
    switch (event.action) {
      case Action::kAlloc:
      case Action::kFreeRequested:
      case Action::kOutOfMemory: return add_memory(type, device, event);
      case Action::kOther: return add_instant(type, device, event);
      default: break;
    }
    constexpr AllocatorEventKind kKinds[] = {AllocatorEventKind::kFreeCompleted, AllocatorEventKind::kSegmentAlloc,
                                             AllocatorEventKind::kSegmentFree, AllocatorEventKind::kSegmentMap,
                                             AllocatorEventKind::kSegmentUnmap};
    const auto kind = kKinds[static_cast<size_t>(event.action) - static_cast<size_t>(Action::kFreeCompleted)];
    part_.allocator_events.push_back({.time_ns = event.time_ns,
                                      .address = event.address,
                                      .bytes = static_cast<int64_t>(event.bytes),
                                      .stream = event.stream,
                                      .lane = lane_of(type, device),
                                      .kind = kind,
                                      .device_type = type,
                                      .device = device,
                                      .pool = event.pool});
    ++part_.event_count;
  }

  void add_memory(int32_t type, int32_t device, const Happened& event) {
    const auto bytes = static_cast<int64_t>(std::min(event.bytes, uint64_t{1} << 60));
    const bool is_free = event.action == Action::kFreeRequested;
    part_.memory_events.push_back({.time_ns = event.time_ns,
                                   .address = event.address,
                                   .bytes = is_free ? -bytes : bytes,
                                   .stream = event.stream,
                                   .lane = lane_of(type, device),
                                   .kind = event.action == Action::kOutOfMemory ? MemoryEventKind::kOutOfMemory
                                           : is_free                            ? MemoryEventKind::kFree
                                                                                : MemoryEventKind::kAlloc,
                                   .device_type = type,
                                   .device = type == kCpuType ? -1 : device,
                                   .pool = event.pool,
                                   .op = event.text.op,
                                   .stack = event.text.stack});
    ++part_.event_count;
  }

  // A snapshot that was taken, a mark of the user's.
  void add_instant(int32_t type, int32_t device, const Happened& event) {
    const std::string_view action = document_.text(action_.of(event.entry));
    if (action.empty()) return malformed();
    part_.instants.push_back(
        {.time_ns = event.time_ns, .lane = lane_of(type, device), .name = pool_.strings.intern(action)});
    ++part_.event_count;
  }

  // Pinned memory of the host: one list, or one for each device.
  void add_host_history(Value traces) {
    const auto add = [&](Value events) { add_history(events, kCpuType, 0); };
    Value first = kNoneValue;
    document_.each(traces, [&](Value item) {
      first = item;
      return false;
    });
    if (document_.type(first) == ValueType::kDict) return add(traces);
    document_.each(traces, [&](Value item) {
      add(item);
      return true;
    });
  }

  template <typename Rows>
  void leave_out(Rows& rows) {
    const size_t before = rows.size();
    std::erase_if(rows, [&](const auto& row) { return !window_.has(row.time_ns); });
    part_.losses[Stat::kSnapshotOutsideTrace] += before - rows.size();
  }
  void leave_out_others() {
    leave_out(part_.memory_events);
    leave_out(part_.allocator_events);
    leave_out(part_.instants);
  }

  // ---- annotations, names, settings ------------------------------------------------------

  // START and END of record_function() and of optimizers.
  void add_annotations(Value list) {
    const Field stage(document_, "stage"), device(document_, "device");
    std::map<std::pair<int64_t, std::string_view>, std::vector<int64_t>> open;
    const StringId category = pool_.strings.intern("user_annotation");
    document_.each(list, [&](Value entry) {
      if (!use(entry)) return true;
      const std::string_view name = document_.text(name_.of(entry));
      const std::string_view what = document_.text(stage.of(entry));
      const std::optional<int64_t> time_us = document_.integer(time_.of(entry));
      const int64_t index = document_.integer(device.of(entry)).value_or(0);
      if (name.empty() || !time_us || *time_us < 0 || *time_us > kMaxTimeNs / 2000 || index < 0 ||
          index >= kMostDevices) {
        malformed();
        return true;
      }
      std::vector<int64_t>& starts = open[{index, name}];
      if (what == "START") {
        starts.push_back(*time_us * 1000);
        return true;
      }
      if (starts.empty()) return true;  // it began before the history
      const int64_t start_ns = starts.back();
      starts.pop_back();
      if (!window_.has(start_ns)) {
        ++part_.losses[Stat::kSnapshotOutsideTrace];
        return true;
      }
      const auto detail = static_cast<Row>(part_.op_details.size());
      part_.op_details.emplace_back();
      part_.host_slices.push_back({.start_ns = start_ns,
                                   .duration_ns = std::max<int64_t>(0, *time_us * 1000 - start_ns),
                                   .lane = lane_of(kCudaType, static_cast<int32_t>(index)),
                                   .name = pool_.strings.intern(name),
                                   .category = category,
                                   .kind = HostKind::kAnnotation,
                                   .detail = detail});
      ++part_.event_count;
      return true;
    });
  }

  void name_lanes() {
    for (uint32_t i = 0; i < pool_.lanes.size(); ++i) {
      const int64_t device = pool_.lanes[i].tid.number;
      const std::string name =
          device == kMostDevices ? "pinned host memory" : "allocations of GPU " + std::to_string(device);
      const LaneId lane{i};
      part_.lane_names.push_back({.lane = lane, .what = LaneNameKind::kThreadName, .text = pool_.strings.intern(name)});
    }
  }

  void keep_settings() {
    const Value settings = field("allocator_settings");
    if (document_.type(settings) == ValueType::kDict)
      keep_metadata("allocator_settings", document_json(document_, settings, kMostMetadataBytes), raw_.info.metadata,
                    raw_.losses);
  }

  const Document& document_;
  const SnapshotWindow window_;
  RawTrace raw_;
  RawPool& pool_;
  RawPart& part_;
  Frames frames_;
  Actions actions_{document_};
  std::vector<bool> used_;  // by container
  LaneId last_lane_{};
  int64_t last_lane_number_ = kNoNumber;
  StringId only_pool_ = kNoString;
  bool is_first_pool_ = true;
  std::map<int32_t, Device> states_;  // by device; those whose history was read are gone
  const Field action_{document_, "action"}, address_{document_, "addr"}, size_{document_, "size"},
      stream_{document_, "stream"}, time_{document_, "time_us"}, pool_id_{document_, "pool_id"},
      frames_field_{document_, "frames"}, name_{document_, "name"}, block_size_{document_, "size"},
      block_address_{document_, "address"}, block_state_{document_, "state"};
};

}  // namespace

bool is_snapshot(const Document& document) {
  const auto has = [&](std::string_view key, Value dict) { return !document.is_none(Field(document, key).of(dict)); };
  if (document.type(document.root) == ValueType::kDict)
    return has("segments", document.root) || has("device_traces", document.root);
  bool is_list_of_segments = false;
  document.each(document.root, [&](Value first) {
    is_list_of_segments = has("total_size", first) && has("blocks", first);
    return false;
  });
  return is_list_of_segments;
}

RawTrace snapshot_rows(const Document& document, const SnapshotWindow& window) {
  return SnapshotRows(document, window).run();
}

bool has_timed_history(const Document& document) {
  const Field time(document, "time_us");
  bool is_timed = false;
  for (const std::string_view key : {"device_traces", "host_traces"}) {
    document.each(Field(document, key).of(document.root), [&](Value events) {
      document.each(events, [&](Value entry) {
        is_timed = document.integer(time.of(entry)).has_value();
        return false;
      });
      return !is_timed;
    });
    if (is_timed) return true;
  }
  return false;
}

}  // namespace firelane::importer
