#include "import/dumps/join_snapshot.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "import/content.h"
#include "import/dumps/snapshot_rows.h"
#include "import/pickle/unpickle.h"

namespace firelane::importer {

namespace {

constexpr int64_t kEarliestUnixNs = 1'262'304'000'000'000'000;
constexpr int64_t kLatestUnixNs = 4'102'444'800'000'000'000;
constexpr int64_t kMostClockErrorNs =
    60'000'000'000;  // a snapshot may be taken on another clock, but not of another day
constexpr size_t kMostCompared = 20'000;
constexpr int32_t kOnGpu = 1;

// From the first start to the last end of what the trace holds, on its own clock.
SnapshotWindow window_of(const RawTrace& trace) {
  SnapshotWindow window{.start_ns = INT64_MAX, .end_ns = INT64_MIN};
  const auto cover = [&](int64_t start_ns, int64_t end_ns) {
    window.start_ns = std::min(window.start_ns, start_ns);
    window.end_ns = std::max(window.end_ns, end_ns);
  };
  for (const RawPart& part : trace.parts) {
    for (const RawHostSlice& row : part.host_slices) {
      if (row.kind != HostKind::kSpan) cover(row.start_ns, row.start_ns + row.duration_ns);
    }
    for (const RawDeviceSlice& row : part.device_slices) cover(row.start_ns, row.start_ns + row.duration_ns);
    for (const RawPlainWork& row : part.plain_work) cover(row.start_ns, row.start_ns + row.duration_ns);
    for (const RawMemory& row : part.memory_events) cover(row.time_ns, row.time_ns);
  }
  return window;
}

using AllocKey = std::tuple<int32_t, uint64_t, int64_t>;  // device, address, bytes
using AllocTimes = std::map<AllocKey, std::vector<int64_t>>;

AllocTimes allocations(const RawTrace& trace, int64_t shift_ns) {
  AllocTimes times;
  for (const RawPart& part : trace.parts) {
    for (const RawMemory& row : part.memory_events) {
      if (row.device_type != kOnGpu || row.kind != MemoryEventKind::kAlloc) continue;
      times[{row.device, row.address, row.bytes}].push_back(row.time_ns + shift_ns);
    }
  }
  for (auto& [key, list] : times) std::sort(list.begin(), list.end());
  return times;
}

// In Unix time.
Result<SnapshotWindow> unix_window_of(const RawTrace& trace) {
  SnapshotWindow window = window_of(trace);
  const int64_t base_ns = trace.info.base_time_ns;
  const bool fits = window.start_ns <= window.end_ns && base_ns >= 0 && base_ns < kLatestUnixNs &&
                    window.start_ns > kMinTimeNs && window.end_ns < kLatestUnixNs - base_ns;
  if (!fits || window.start_ns + base_ns < kEarliestUnixNs) {
    return Error{trace.info.path +
                 ": does not say when it was recorded (no Unix time), so that the snapshot has no place on its axis"};
  }
  window.start_ns += base_ns;
  window.end_ns += base_ns;
  return window;
}

// The median distance between an allocation of the trace and the nearest of the snapshot with the same device, address
// and size; kNoNumber where the trace has none to compare. An Error when they share too few to be of one process.
Result<int64_t> clock_distance(const RawTrace& snapshot, const std::string& path, const RawTrace& trace) {
  const AllocTimes of_snapshot = allocations(snapshot, 0);
  std::vector<int64_t> distances;
  size_t compared = 0;
  for (const auto& [key, times] : allocations(trace, trace.info.base_time_ns)) {
    const auto same = of_snapshot.find(key);
    for (const int64_t time : times) {
      if (compared == kMostCompared) break;
      ++compared;
      if (same == of_snapshot.end()) continue;
      const auto after = std::lower_bound(same->second.begin(), same->second.end(), time);
      int64_t nearest = after == same->second.end() ? INT64_MAX : *after - time;
      if (after != same->second.begin() && time - *std::prev(after) < nearest) nearest = *std::prev(after) - time;
      if (std::abs(nearest) <= kMostClockErrorNs) distances.push_back(nearest);
    }
  }
  if (compared == 0) return kNoNumber;
  if (distances.size() * 2 < compared) {
    return Error{path + ": not of the same process as " + trace.info.path + ", or its history begins too late: of " +
                 std::to_string(compared) + " allocations of the trace it has " + std::to_string(distances.size())};
  }
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

Result<void> check_overlap(const SnapshotWindow& told, const SnapshotWindow& trace, const std::string& path) {
  if (told.end_ns >= trace.start_ns && told.start_ns <= trace.end_ns) return {};
  const bool is_before = told.end_ns < trace.start_ns;
  const int64_t apart_ns = is_before ? trace.start_ns - told.end_ns : told.start_ns - trace.end_ns;
  const int64_t apart_ms = apart_ns / 1'000'000;
  const std::string apart =
      apart_ms < 10'000 ? std::to_string(apart_ms) + " ms" : std::to_string(apart_ms / 1000) + " s";
  return Error{path + ": its events " + (is_before ? "end " : "begin ") + apart +
               (is_before ? " before the trace begins" : " after the trace ends") + ": they are of two runs"};
}

template <typename Rows>
void shift_snapshot_rows(Rows& rows, int64_t by_ns) {
  for (auto& row : rows) row.time_ns += by_ns;
}

void shift_part(RawPart& part, int64_t by_ns) {
  shift_snapshot_rows(part.memory_events, by_ns);
  shift_snapshot_rows(part.allocator_events, by_ns);
  shift_snapshot_rows(part.allocator_segments, by_ns);
  shift_snapshot_rows(part.allocator_blocks, by_ns);
  shift_snapshot_rows(part.instants, by_ns);
  for (RawHostSlice& row : part.host_slices) row.start_ns += by_ns;
}

// Devices whose allocations the snapshot tells.
std::set<std::pair<int32_t, int32_t>> devices_of(const RawTrace& snapshot) {
  std::set<std::pair<int32_t, int32_t>> devices;
  for (const RawPart& part : snapshot.parts) {
    for (const RawMemory& row : part.memory_events) devices.insert({row.device_type, row.device});
    for (const RawAllocatorSegment& row : part.allocator_segments) devices.insert({row.device_type, row.device});
  }
  return devices;
}

void give_way(RawTrace& trace, const std::set<std::pair<int32_t, int32_t>>& devices) {
  const auto is_told = [&](const auto& row) {
    return row.device_type == kOnGpu && devices.contains({row.device_type, row.device});
  };
  for (RawPart& part : trace.parts) {
    std::erase_if(part.memory_events, is_told);
    std::erase_if(part.allocator_events, is_told);
    std::erase_if(part.allocator_segments, is_told);
    std::erase_if(part.allocator_blocks, is_told);
  }
}

// Ranges of record_function() and steps are in both where torch.profiler recorded the trace: its own stay.
void drop_known_ranges(const RawTrace& trace, RawTrace& snapshot) {
  RawPart& part = snapshot.parts.front();
  const StringPool& strings = snapshot.pools[part.pool].strings;
  std::set<std::string_view> known;
  for (const RawPart& own : trace.parts) {
    const StringPool& own_strings = trace.pools[own.pool].strings;
    std::unordered_set<uint32_t> ids;
    for (const RawHostSlice& range : part.host_slices) {
      const StringId id = own_strings.find(strings.view(range.name));
      if (id != kNoString) ids.insert(static_cast<uint32_t>(id));
    }
    if (ids.empty()) continue;
    for (const RawHostSlice& row : own.host_slices) {
      if (ids.contains(static_cast<uint32_t>(row.name))) known.insert(own_strings.view(row.name));
    }
  }
  // Each range has details of its own, in the same order.
  size_t kept = 0;
  for (const RawHostSlice& range : part.host_slices) {
    if (known.contains(strings.view(range.name))) continue;
    RawHostSlice left = range;
    part.op_details[kept] = part.op_details[left.detail.row];
    left.detail.row = static_cast<Row>(kept);
    part.host_slices[kept++] = left;
  }
  part.host_slices.resize(kept);
  part.op_details.resize(kept);
}

void append_snapshot(RawTrace&& snapshot, RawTrace& trace) {
  const auto first_pool = static_cast<uint32_t>(trace.pools.size());
  for (RawPool& pool : snapshot.pools) trace.pools.push_back(std::move(pool));
  for (RawPart& part : snapshot.parts) {
    part.pool += first_pool;
    trace.parts.push_back(std::move(part));
  }
  for (MetadataEntry& entry : snapshot.info.metadata) trace.info.metadata.push_back(std::move(entry));
}

}  // namespace

Result<void> join_snapshot(const std::string& path, RawTrace& trace) {
  FL_TRY(Content content, open_content(path));
  if (!is_pickle(content.begin)) {
    return Error{path + ": not a memory snapshot (torch.cuda.memory._dump_snapshot writes one)"};
  }
  FL_TRY(const Unpickled found, unpickle(*content.source, path));
  if (!is_snapshot(found.document)) return Error{path + ": a pickle, but not a memory snapshot"};
  FL_TRY_VOID(join_snapshot(found.document, path, trace));
  trace.losses.add(content.source->losses());
  if (found.is_cut) trace.losses[Stat::kTruncated] = 1;
  return {};
}

Result<void> join_snapshot(const Document& snapshot, const std::string& path, RawTrace& trace) {
  if (is_dump(trace.info.origin)) {
    return Error{path + ": a memory snapshot is joined to a trace with times, and " + trace.info.path + " is none"};
  }
  if (!has_timed_history(snapshot)) {
    return Error{path +
                 ": no events with times, so that it has no place on the trace's axis; call "
                 "torch.cuda.memory._record_memory_history() before the program runs (torch 2.2 or later)"};
  }
  FL_TRY(SnapshotWindow window, unix_window_of(trace));
  const RawTrace all = snapshot_rows(snapshot);
  JoinedFile joined{.origin = Origin::kMemorySnapshot, .path = path};
  joined.entries = static_cast<int64_t>(all.parts.front().event_count);
  FL_TRY(joined.clock_offset_ns, clock_distance(all, path, trace));
  const int64_t clock_ns = joined.clock_offset_ns == kNoNumber ? 0 : joined.clock_offset_ns;
  window.start_ns += clock_ns;
  window.end_ns += clock_ns;
  FL_TRY_VOID(check_overlap(window_of(all), window, path));
  RawTrace inside = snapshot_rows(snapshot, window);
  RawPart& part = inside.parts.front();
  joined.used = joined.entries - static_cast<int64_t>(part.losses[Stat::kSnapshotOutsideTrace]);
  part.event_count = static_cast<uint64_t>(std::max<int64_t>(joined.used, 0));
  shift_part(part, -trace.info.base_time_ns - clock_ns);
  give_way(trace, devices_of(inside));
  drop_known_ranges(trace, inside);
  append_snapshot(std::move(inside), trace);
  trace.info.joined.push_back(std::move(joined));
  return {};
}

}  // namespace firelane::importer
