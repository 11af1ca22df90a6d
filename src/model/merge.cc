// Merges what was read in parallel: strings, lanes, row numbers, and the zero of time; bounds what analyses add up.
//
// What happens to a value follows from the type and the use of its column (model/table.h): whoever adds one writes
// nothing here.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/parallel.h"
#include "model/assemble.h"
#include "model/renumber.h"

namespace firelane {

namespace {

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
      map(lane.pid);
      map(lane.tid);
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

// Calls fn(index) for each part, on several threads.
template <typename Fn>
void each_part(const RawTrace& raw, unsigned threads, const Fn& fn) {
  parallel_ranges(
      raw.parts.size(), threads,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) fn(i);
      },
      1);
}

// The first time of rows that the trace may begin with.
template <typename RawRow>
void find_start(RawVector<RawRow>& rows, int64_t& start_ns) {
  for (RawRow& row : rows) {
    RawRow::each_field(row, [&]<Use use, typename T>(UseIs<use>, T& value) {
      if constexpr (use == Use::kTime || use == Use::kStart) start_ns = std::min(start_ns, value);
    });
  }
}

template <typename RawRow>
void shift_times(RawVector<RawRow>& rows, int64_t start_ns) {
  for (RawRow& row : rows) {
    RawRow::each_field(row, [&]<Use use, typename T>(UseIs<use>, T& value) {
      if constexpr (is_time(use)) value -= start_ns;
    });
  }
}

// What the slices of a part, or of all, add up to.
struct Extent {
  double total_ns = 0;
  int64_t end_ns = 0;
  size_t slices = 0;
  template <typename Slices>
  void add_slices(const Slices& rows) {
    for (const auto& row : rows) {
      total_ns += static_cast<double>(row.duration_ns);
      end_ns = std::max(end_ns, row.start_ns + row.duration_ns);
    }
    slices += rows.size();
  }
  void add(const Extent& other) {
    total_ns += other.total_ns;
    end_ns = std::max(end_ns, other.end_ns);
    slices += other.slices;
  }
};

// Nothing after `limit_ns`: times are cut to it, and durations beyond it to 0. How many rows that were.
template <typename RawRow>
uint64_t cut_times(RawVector<RawRow>& rows, int64_t limit_ns) {
  uint64_t cut = 0;
  for (RawRow& row : rows) {
    int64_t time_ns = 0;
    bool is_cut = false;
    RawRow::each_field(row, [&]<Use use, typename T>(UseIs<use>, T& value) {
      if constexpr (is_time(use)) {
        is_cut = value > limit_ns;
        value = time_ns = std::clamp(value, -limit_ns, limit_ns);
      } else if constexpr (use == Use::kDuration) {
        is_cut = is_cut || value > limit_ns - time_ns;
        if (is_cut) value = 0;
      }
    });
    cut += is_cut ? 1 : 0;
  }
  return cut;
}

// Readers let clocks of decades through, and a broken file can hold many of them: then sums of durations would not fit
// 64 bits. Every slice, and the whole length once per lane, must add up to less than 2^61 ns (73 years).
void fit_times(RawTrace& raw, Model& model, const Extent& all) {
  const size_t lanes = model.lanes.size() + 1;
  if (all.total_ns + static_cast<double>(lanes) * static_cast<double>(all.end_ns) < kMaxColumnSum) return;
  const auto limit_ns = static_cast<int64_t>(kMaxColumnSum / static_cast<double>(all.slices + lanes));
  for (RawPart& part : raw.parts) {
    part.each_table([&](auto& rows) { model.losses[Stat::kDurationOutOfRange] += cut_times(rows, limit_ns); });
  }
}

}  // namespace

void merge_pools(RawTrace& raw, Model& model, unsigned threads) {
  const std::vector<PoolMap> maps = merge_strings_and_lanes(raw, model);
  std::vector<PartBase> bases;
  PartBase next;
  for (const RawPart& part : raw.parts) {
    bases.push_back(next);
    next.pass(part);
  }
  each_part(raw, threads, [&](size_t i) {
    raw.parts[i].each_table([&](auto& rows) { renumber(rows, maps[raw.parts[i].pool], bases[i]); });
  });
}

void rebase_times(RawTrace& raw, Model& model, unsigned threads) {
  std::vector<int64_t> starts(raw.parts.size(), INT64_MAX);
  each_part(raw, threads, [&](size_t i) {
    int64_t first = INT64_MAX;
    raw.parts[i].each_table([&](auto& rows) { find_start(rows, first); });
    starts[i] = first;
  });
  int64_t start = INT64_MAX;
  for (const int64_t part_start : starts) start = std::min(start, part_start);
  if (start == INT64_MAX) start = 0;
  model.info.start_ns = start;
  std::vector<Extent> extents(raw.parts.size());
  each_part(raw, threads, [&](size_t i) {
    raw.parts[i].each_table([&](auto& rows) { shift_times(rows, start); });
    extents[i].add_slices(raw.parts[i].host_slices);
    extents[i].add_slices(raw.parts[i].device_slices);
    extents[i].add_slices(raw.parts[i].plain_work);
  });
  Extent all;
  for (const Extent& extent : extents) all.add(extent);
  fit_times(raw, model, all);
  for (int64_t* time : {&model.info.recorder.device_window.start_ns, &model.info.recorder.device_window.end_ns}) {
    if (*time != kNoNumber && __builtin_sub_overflow(*time, start, time)) *time = kNoNumber;
  }
}

}  // namespace firelane
