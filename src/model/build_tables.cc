// Turns the rows of all parts into the model's columns: slices sorted by (lane, start,
// longer first, file order), details in file order, points in time order.
#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "base/parallel.h"
#include "base/run_sort.h"
#include "model/assemble.h"

namespace firelane {

namespace {

// Pointers to all rows of one kind, sorted as slices are. Fills begin/end of each lane.
template <typename RawRow>
std::vector<const RawRow*> sort_by_lane(RawTrace& raw, RawVector<RawRow> RawPart::* rows,
                                        const std::vector<LaneId>& lane_map, std::vector<Row>& begin,
                                        std::vector<Row>& end, unsigned threads) {
  const size_t lane_count = begin.size();
  const auto lane_of = [&](const RawRow& row) {
    return static_cast<size_t>(lane_map[static_cast<uint32_t>(row.lane)]);
  };
  std::vector<size_t> next(lane_count + 1, 0);
  for (const RawPart& part : raw.parts) {
    for (const RawRow& row : part.*rows) ++next[lane_of(row) + 1];
  }
  for (size_t lane = 0; lane < lane_count; ++lane) {
    begin[lane] = static_cast<Row>(next[lane]);
    next[lane + 1] += next[lane];
    end[lane] = static_cast<Row>(next[lane + 1]);
  }
  std::vector<const RawRow*> order(next[lane_count]);
  for (const RawPart& part : raw.parts) {
    for (const RawRow& row : part.*rows) order[next[lane_of(row)]++] = &row;
  }
  const auto before = [](const RawRow* a, const RawRow* b) {
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->duration_ns > b->duration_ns;
  };
  parallel_ranges(
      lane_count, threads,
      [&](size_t first, size_t last) {
        for (size_t lane = first; lane < last; ++lane)
          run_sort(order.data() + begin[lane], end[lane] - begin[lane], before);
      },
      1);
  return order;
}

template <typename RawRow>
size_t count_rows(const RawTrace& raw, RawVector<RawRow> RawPart::* rows) {
  size_t count = 0;
  for (const RawPart& part : raw.parts) count += (part.*rows).size();
  return count;
}

size_t count_kernels(const RawTrace& raw) {
  size_t count = 0;
  for (const RawPart& part : raw.parts) count += part.kernel_count();
  return count;
}

template <typename RawRow>
void free_rows(RawTrace& raw, RawVector<RawRow> RawPart::* rows) {
  for (RawPart& part : raw.parts) RawVector<RawRow>().swap(part.*rows);
}

// What stands in a column for a raw row's value: the lane's new id, all else as it is.
struct ColumnMap {
  const std::vector<LaneId>& lanes;
  LaneId operator()(LaneId lane) const { return lanes[static_cast<uint32_t>(lane)]; }
  template <typename T>
  T operator()(const T& value) const {
    return value;
  }
};

template <typename RawRow>
int64_t time_of(const RawRow& row) {
  int64_t time_ns = 0;
  RawRow::each_field(row, [&]<Use use, typename T>(UseIs<use>, const T& value) {
    if constexpr (is_time(use)) time_ns = value;
  });
  return time_ns;
}

// All rows of one kind, sorted by time.
template <typename RawRow>
std::vector<RawRow> take_sorted(RawTrace& raw, RawVector<RawRow> RawPart::* rows) {
  std::vector<RawRow> all;
  all.reserve(count_rows(raw, rows));
  for (const RawPart& part : raw.parts) all.insert(all.end(), (part.*rows).begin(), (part.*rows).end());
  free_rows(raw, rows);
  run_sort(all.data(), all.size(), [](const RawRow& a, const RawRow& b) { return time_of(a) < time_of(b); });
  return all;
}

// Fills a table with the rows of all parts: by time, or, where they have none, in file order.
template <typename Table>
void build_table(RawTrace& raw, RawVector<typename Table::Raw> RawPart::* rows, Table& out, const ColumnMap& map) {
  size_t next = 0;
  if constexpr (Table::Raw::kIsTimed) {
    const auto sorted = take_sorted(raw, rows);
    out.resize(sorted.size());
    for (const auto& row : sorted) out.set(next++, row, map);
  } else {
    out.resize(count_rows(raw, rows));
    for (const RawPart& part : raw.parts) {
      for (const auto& row : part.*rows) out.set(next++, row, map);
    }
    free_rows(raw, rows);
  }
}

// Kernels may share their details until here. Each part's rows are freed as soon as they are in the table.
void build_table(RawTrace& raw, RawVector<RawKernel> RawPart::*, KernelDetails& out, const ColumnMap& map) {
  out.resize(count_kernels(raw));
  size_t next = 0;
  for (RawPart& part : raw.parts) {
    if (part.kernel_order.empty()) {
      for (const RawKernel& row : part.kernel_details) out.set(next++, row, map);
    } else {
      for (const Row row : part.kernel_order) out.set(next++, part.kernel_details[row], map);
    }
    RawVector<RawKernel>().swap(part.kernel_details);
    RawVector<Row>().swap(part.kernel_order);
  }
}

// A track is (process, name, series).
void build_counters(RawTrace& raw, Model& model) {
  std::unordered_map<uint64_t, uint32_t> tracks;
  for (const RawCounter& row : take_sorted(raw, &RawPart::counters)) {
    const TraceId pid = row.pid;
    const uint64_t key = mix_hash(mix_hash(static_cast<uint64_t>(pid.number), static_cast<uint32_t>(pid.text)),
                                  uint64_t{static_cast<uint32_t>(row.name)} << 32 | static_cast<uint32_t>(row.series));
    const auto [at, added] = tracks.try_emplace(key, static_cast<uint32_t>(model.counter_tracks.size()));
    if (added) {
      model.counter_tracks.pid.push_back(pid);
      model.counter_tracks.name.push_back(row.name);
      model.counter_tracks.series.push_back(row.series);
    }
    model.counter_samples.time_ns.push_back(row.time_ns);
    model.counter_samples.track.push_back(at->second);
    model.counter_samples.value.push_back(row.value);
  }
}

}  // namespace

void build_host_slices(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map, unsigned threads) {
  const auto order =
      sort_by_lane(raw, &RawPart::host_slices, lane_map, model.lanes.host_begin, model.lanes.host_end, threads);
  HostSlices& out = model.host_slices;
  out.resize(order.size());
  model.op_details.slice.assign(count_rows(raw, &RawPart::op_details), kNoRow);
  model.call_details.slice.assign(count_rows(raw, &RawPart::call_details), kNoRow);
  parallel_ranges(order.size(), threads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const RawHostSlice& row = *order[i];
      out.set(i, row, ColumnMap{lane_map});
      if (row.detail == kNoRow) continue;
      (is_call(row.kind) ? model.call_details.slice : model.op_details.slice)[row.detail] = static_cast<Row>(i);
    }
  });
  free_rows(raw, &RawPart::host_slices);
}

void build_device_slices(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map) {
  const auto order =
      sort_by_lane(raw, &RawPart::device_slices, lane_map, model.lanes.device_begin, model.lanes.device_end, 1);
  DeviceSlices& out = model.device_slices;
  out.resize(order.size());
  model.kernel_details.slice.assign(count_kernels(raw), kNoRow);
  model.copy_details.slice.assign(count_rows(raw, &RawPart::copy_details), kNoRow);
  model.sync_details.slice.assign(count_rows(raw, &RawPart::sync_details), kNoRow);
  for (size_t i = 0; i < order.size(); ++i) {
    const RawDeviceSlice& row = *order[i];
    out.set(i, row, ColumnMap{lane_map});
    if (row.detail == kNoRow) continue;
    std::vector<Row>& slice = row.kind == DeviceKind::kKernel ? model.kernel_details.slice
                              : row.kind == DeviceKind::kSync ? model.sync_details.slice
                                                              : model.copy_details.slice;
    slice[row.detail] = static_cast<Row>(i);
  }
  free_rows(raw, &RawPart::device_slices);
}

void build_other_tables(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map) {
#define FL_BUILD(RawRow, name) build_table(raw, &RawPart::name, model.name, ColumnMap{lane_map});
#define FL_LEAVE(RawRow, name)
  FL_RAW_TABLES(FL_BUILD, FL_LEAVE)
#undef FL_LEAVE
#undef FL_BUILD
  build_counters(raw, model);
}

}  // namespace firelane
