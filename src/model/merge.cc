// Merges what was read in parallel: strings, lanes, row numbers, and the zero of time.
#include <algorithm>
#include <unordered_map>

#include "base/parallel.h"
#include "model/assemble.h"

namespace firelane {

namespace {

struct PoolMap {
  std::vector<StringId> strings;
  std::vector<LaneId> lanes;

  void operator()(StringId& id) const { id = strings[static_cast<uint32_t>(id)]; }
  void operator()(LaneId& id) const { id = lanes[static_cast<uint32_t>(id)]; }
};

// Where a part's details begin in the whole trace.
struct DetailBase {
  Row ops = 0, calls = 0, kernels = 0, copies = 0, syncs = 0, comms = 0;
};

std::vector<PoolMap> merge_strings_and_lanes(RawTrace& raw, Model& model) {
  std::vector<PoolMap> maps;
  RawPool lanes;  // holds global lanes; its strings are model.strings' ids already
  for (RawPool& pool : raw.pools) {
    PoolMap& map = maps.emplace_back();
    if (maps.size() == 1) {
      model.strings = std::move(pool.strings);
      map.strings.resize(model.strings.size());
      for (uint32_t i = 0; i < map.strings.size(); ++i) map.strings[i] = StringId{i};
    } else {
      map.strings.resize(pool.strings.size());
      for (uint32_t i = 0; i < map.strings.size(); ++i)
        map.strings[i] = model.strings.intern(pool.strings.view(StringId{i}));
    }
    map.lanes.reserve(pool.lanes.size());
    for (RawPool::Lane lane : pool.lanes) {
      map(lane.pid.text);
      map(lane.tid.text);
      map.lanes.push_back(lanes.lane(lane.pid, lane.tid));
    }
  }
  for (const RawPool::Lane& lane : lanes.lanes) {
    model.lanes.pid.push_back(lane.pid);
    model.lanes.tid.push_back(lane.tid);
  }
  model.lanes.kind.resize(lanes.lanes.size(), LaneKind::kThread);
  return maps;
}

void renumber_part(RawPart& part, const PoolMap& map, const DetailBase& base) {
  const auto shift = [](Row& row, Row by) {
    if (row != kNoRow) row += by;
  };
  for (RawHostSlice& row : part.host_slices) {
    map(row.name), map(row.category), map(row.lane);
    shift(row.detail, is_call(row.kind) ? base.calls : base.ops);
  }
  for (RawOp& row : part.ops) {
    map(row.input_dims), map(row.input_types), map(row.input_strides), map(row.concrete_inputs);
    map(row.stack), map(row.module_hierarchy), map(row.overload);
    shift(row.comm, base.comms);
  }
  for (RawDeviceSlice& row : part.device_slices) {
    map(row.name), map(row.category), map(row.lane);
    const bool is_copy = row.kind == DeviceKind::kCopy || row.kind == DeviceKind::kSet;
    shift(row.detail, row.kind == DeviceKind::kKernel ? base.kernels : is_copy ? base.copies : base.syncs);
    shift(row.comm, base.comms);
  }
  for (RawComm& row : part.comms) {
    map(row.collective), map(row.dtype), map(row.group_name), map(row.group_description), map(row.group_ranks);
    map(row.in_split_sizes), map(row.out_split_sizes);
  }
  for (RawMemory& row : part.memory) map(row.lane), map(row.pool);
  for (RawAllocatorEvent& row : part.allocator_events) map(row.lane), map(row.pool);
  for (RawAllocatorSegment& row : part.allocator_segments) map(row.pool);
  for (RawInstant& row : part.instants) map(row.name), map(row.category), map(row.lane);
  for (RawCounter& row : part.counters) map(row.name), map(row.series), map(row.pid.text);
  for (RawFlow& row : part.flows) map(row.name), map(row.category), map(row.lane);
  for (RawEdge& row : part.edges) map(row.name), map(row.category), map(row.id), map(row.lane);
  for (RawLaneName& row : part.lane_names) map(row.lane), map(row.text);
}

// Calls fn with each array of timed rows of a part; rows have start_ns or time_ns.
template <typename Fn>
void visit_times(RawPart& part, const Fn& fn) {
  for (RawHostSlice& row : part.host_slices) fn(row.start_ns);
  for (RawDeviceSlice& row : part.device_slices) fn(row.start_ns);
  for (RawMemory& row : part.memory) fn(row.time_ns);
  for (RawAllocatorEvent& row : part.allocator_events) fn(row.time_ns);
  for (RawInstant& row : part.instants) fn(row.time_ns);
  for (RawCounter& row : part.counters) fn(row.time_ns);
}

// What the slices of a part, or of all, add up to.
struct Extent {
  double total_ns = 0;
  int64_t end_ns = 0;
  size_t slices = 0;
  void add(int64_t start_ns, int64_t duration_ns) {
    total_ns += static_cast<double>(duration_ns);
    end_ns = std::max(end_ns, start_ns + duration_ns);
    ++slices;
  }
  void add(const Extent& other) {
    total_ns += other.total_ns;
    end_ns = std::max(end_ns, other.end_ns);
    slices += other.slices;
  }
};

Extent extent_of(const RawPart& part) {
  Extent extent;
  for (const RawHostSlice& row : part.host_slices) extent.add(row.start_ns, row.duration_ns);
  for (const RawDeviceSlice& row : part.device_slices) extent.add(row.start_ns, row.duration_ns);
  return extent;
}

// Nothing after `limit_ns`: times are cut to it, and durations beyond it to 0. How many rows that were.
uint64_t cut_times(RawPart& part, int64_t limit_ns) {
  uint64_t cut = 0;
  const auto fit = [&](int64_t& time_ns, int64_t& duration_ns) {
    if (time_ns <= limit_ns && duration_ns <= limit_ns - time_ns) return;
    time_ns = std::min(time_ns, limit_ns);
    duration_ns = 0;
    ++cut;
  };
  int64_t none = 0;
  for (RawHostSlice& row : part.host_slices) fit(row.start_ns, row.duration_ns);
  for (RawDeviceSlice& row : part.device_slices) fit(row.start_ns, row.duration_ns);
  for (RawMemory& row : part.memory) fit(row.time_ns, none);
  for (RawAllocatorEvent& row : part.allocator_events) fit(row.time_ns, none);
  for (RawInstant& row : part.instants) fit(row.time_ns, none);
  for (RawCounter& row : part.counters) fit(row.time_ns, none);
  for (RawFlow& row : part.flows) fit(row.time_ns, none);
  return cut;
}

// Readers let clocks of decades through, and a broken file can hold many of them: then sums of durations would not fit
// 64 bits. Every slice, and the whole length once per lane, must add up to less than 2^61 ns (73 years).
void fit_times(RawTrace& raw, Model& model, const Extent& all) {
  constexpr double kMostNs = 0x1p61;
  const size_t lanes = model.lanes.size() + 1;
  if (all.total_ns + static_cast<double>(lanes) * static_cast<double>(all.end_ns) < kMostNs) return;
  const auto limit_ns = static_cast<int64_t>(kMostNs / static_cast<double>(all.slices + lanes));
  for (RawPart& part : raw.parts) model.losses[Stat::kDurationOutOfRange] += cut_times(part, limit_ns);
}

}  // namespace

void merge_pools(RawTrace& raw, Model& model, unsigned threads) {
  const std::vector<PoolMap> maps = merge_strings_and_lanes(raw, model);
  std::vector<DetailBase> bases;
  DetailBase next;
  for (const RawPart& part : raw.parts) {
    bases.push_back(next);
    next.ops += static_cast<Row>(part.ops.size());
    next.calls += static_cast<Row>(part.calls.size());
    next.kernels += static_cast<Row>(part.kernels.size());
    next.copies += static_cast<Row>(part.copies.size());
    next.syncs += static_cast<Row>(part.syncs.size());
    next.comms += static_cast<Row>(part.comms.size());
  }
  parallel_ranges(
      raw.parts.size(), threads,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) renumber_part(raw.parts[i], maps[raw.parts[i].pool], bases[i]);
      },
      1);
}

void rebase_times(RawTrace& raw, Model& model, unsigned threads) {
  std::vector<int64_t> starts(raw.parts.size(), INT64_MAX);
  const auto each_part = [&](const auto& fn) {
    parallel_ranges(
        raw.parts.size(), threads,
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) fn(i);
        },
        1);
  };
  each_part([&](size_t i) {
    int64_t first = INT64_MAX;
    visit_times(raw.parts[i], [&](int64_t time) { first = std::min(first, time); });
    starts[i] = first;
  });
  int64_t start = INT64_MAX;
  for (const int64_t part_start : starts) start = std::min(start, part_start);
  if (start == INT64_MAX) start = 0;
  model.info.start_ns = start;
  std::vector<Extent> extents(raw.parts.size());
  each_part([&](size_t i) {
    visit_times(raw.parts[i], [&](int64_t& time) { time -= start; });
    for (RawFlow& row : raw.parts[i].flows) row.time_ns -= start;
    for (RawAllocatorSegment& row : raw.parts[i].allocator_segments) row.time_ns -= start;
    for (RawAllocatorBlock& row : raw.parts[i].allocator_blocks) row.time_ns -= start;
    extents[i] = extent_of(raw.parts[i]);
  });
  Extent all;
  for (const Extent& extent : extents) all.add(extent);
  fit_times(raw, model, all);
  model.timed_steps = std::move(raw.timed_steps);
  for (int64_t& time : model.timed_steps.start_ns) time -= start;
  for (int64_t* time : {&model.info.recorder.device_window.start_ns, &model.info.recorder.device_window.end_ns}) {
    if (*time != kNoNumber && __builtin_sub_overflow(*time, start, time)) *time = kNoNumber;
  }
}

}  // namespace firelane
