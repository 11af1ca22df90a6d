// Lanes: which ones have something on them, what kind each is, its names, and an order
// that does not depend on how the reading was split: threads, async, other, streams; by process and
// thread within each.
#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "model/assemble.h"

namespace firelane {

namespace {

struct Usage {
  bool thread = false;  // ops, Python, calls, annotations, memory
  bool device = false;
  bool other = false;
};

std::vector<Usage> find_usage(const RawTrace& raw, size_t lanes) {
  std::vector<Usage> usage(lanes);
  const auto at = [&](LaneId lane) -> Usage& { return usage[static_cast<uint32_t>(lane)]; };
  for (const RawPart& part : raw.parts) {
    for (const RawHostSlice& row : part.host_slices) {
      const bool aside = row.kind == HostKind::kSpan || row.kind == HostKind::kOverhead;
      (aside ? at(row.lane).other : at(row.lane).thread) = true;
    }
    for (const RawDeviceSlice& row : part.device_slices) at(row.lane).device = true;
    for (const RawWorkLook& look : part.work_looks) at(look.lane).device = true;
    for (const RawMemory& row : part.memory_events) at(row.lane).thread = true;
    for (const RawAllocatorEvent& row : part.allocator_events) at(row.lane).thread = true;
    for (const RawInstant& row : part.instants) at(row.lane).other = true;
    for (const RawStackSample& row : part.stack_samples) at(row.lane).thread = true;
  }
  return usage;
}

LaneKind kind_of(const Usage& usage, LaneKind known) {
  if (known == LaneKind::kAsync) return known;
  if (usage.device) return LaneKind::kStream;
  return usage.thread ? LaneKind::kThread : LaneKind::kOther;
}

struct ProcessNames {
  StringId name{};
  StringId labels{};
  int64_t sort_index = kNoNumber;
};

struct ThreadNames {
  StringId name{};
  int64_t sort_index = kNoNumber;
};

int kind_rank(LaneKind kind) {
  switch (kind) {
    case LaneKind::kThread: return 0;
    case LaneKind::kAsync: return 1;
    case LaneKind::kOther: return 2;
    case LaneKind::kStream: return 3;
  }
  return 4;
}

}  // namespace

std::vector<LaneId> order_lanes(RawTrace& raw, Model& model) {
  Lanes& lanes = model.lanes;
  const size_t count = lanes.pid.size();
  const std::vector<Usage> usage = find_usage(raw, count);

  using PidKey = std::pair<int64_t, uint32_t>;
  const auto pid_key = [&](size_t lane) {
    return PidKey{lanes.pid[lane].number, static_cast<uint32_t>(lanes.pid[lane].text)};
  };
  struct PidHash {
    size_t operator()(const PidKey& key) const { return std::hash<int64_t>{}(key.first) * 31 + key.second; }
  };
  std::unordered_map<PidKey, ProcessNames, PidHash> processes;
  std::vector<ThreadNames> threads(count);
  for (const RawPart& part : raw.parts) {
    for (const RawLaneName& row : part.lane_names) {
      const auto lane = static_cast<uint32_t>(row.lane);
      switch (row.what) {
        case LaneNameKind::kProcessName: processes[pid_key(lane)].name = row.text; break;
        case LaneNameKind::kProcessLabels: processes[pid_key(lane)].labels = row.text; break;
        case LaneNameKind::kProcessSortIndex: processes[pid_key(lane)].sort_index = row.number; break;
        case LaneNameKind::kThreadName: threads[lane].name = row.text; break;
        case LaneNameKind::kThreadSortIndex: threads[lane].sort_index = row.number; break;
      }
    }
  }

  std::vector<uint32_t> order;
  for (uint32_t lane = 0; lane < count; ++lane) {
    if (usage[lane].thread || usage[lane].device || usage[lane].other) order.push_back(lane);
  }
  const auto key = [&](uint32_t lane) {
    return std::tuple(kind_rank(kind_of(usage[lane], lanes.kind[lane])), lanes.pid[lane].number,
                      model.text(lanes.pid[lane].text), lanes.tid[lane].number, model.text(lanes.tid[lane].text), lane);
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });

  Lanes ordered;
  std::vector<LaneId> map(count, LaneId{UINT32_MAX});
  for (const uint32_t lane : order) {
    map[lane] = LaneId{static_cast<uint32_t>(ordered.size())};
    const ProcessNames process = processes[pid_key(lane)];
    ordered.kind.push_back(kind_of(usage[lane], lanes.kind[lane]));
    ordered.pid.push_back(lanes.pid[lane]);
    ordered.tid.push_back(lanes.tid[lane]);
    ordered.process_name.push_back(process.name);
    ordered.process_labels.push_back(process.labels);
    ordered.process_sort_index.push_back(process.sort_index);
    ordered.name.push_back(threads[lane].name);
    ordered.owner.push_back(lanes.pid[lane].number == kProfilerPid ? LaneOwner::kProfiler : LaneOwner::kProgram);
    ordered.sort_index.push_back(threads[lane].sort_index);
  }
  ordered.resize(order.size());
  lanes = std::move(ordered);
  return map;
}

}  // namespace firelane
